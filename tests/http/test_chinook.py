"""A database that people know, served: nested data out, a write in, a search with optional parameters (issue 2).

The tables are the Chinook sample; everything that makes it an API is in `FUNCTIONS`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer, problem
from tests.harness.service import ROOT, Service
from tests.http.conftest import Serve

FUNCTIONS = """
create type track_line as (name text, seconds numeric);
create type album_line as (album_id int, title text, tracks track_line[]);

create function artist_with_albums(_artist_id int) returns table(artist_id int, name text, albums album_line[])
language sql stable as $$
  select a.artist_id, a.name, array(
    select (l.album_id, l.title, array(
      select (t.name, round(t.milliseconds / 1000.0, 1))::track_line
      from track t where t.album_id = l.album_id order by t.track_id limit 2))::album_line
    from album l where l.artist_id = a.artist_id order by l.album_id)
  from artist a where a.artist_id = _artist_id
$$;
comment on function artist_with_albums(int) is E'An artist and all albums.\\nHTTP GET /artists/{_artist_id}\\nsingle';

create function find_tracks(
  _name text default null, _genre text default null, _max_seconds int default null, _limit int default 3
) returns table(track_id int, name text, genre text, unit_price numeric) language sql stable as $$
  select t.track_id, t.name, g.name, t.unit_price
  from track t join genre g using (genre_id)
  where (_name is null or t.name ilike '%' || _name || '%')
    and (_genre is null or g.name = _genre)
    and (_max_seconds is null or t.milliseconds < _max_seconds * 1000)
  order by t.track_id limit _limit
$$;
comment on function find_tracks(text, text, int, int) is 'HTTP GET /tracks';

create type order_line as (track_id int, quantity int);
create function write_invoice(_customer_id int, _lines jsonb, _date timestamp default '2026-01-01')
returns table(invoice_id int, total numeric, lines int) language plpgsql volatile as $$
declare new_id int;
begin
  if jsonb_array_length(_lines) = 0 then raise exception 'An invoice needs at least one line'; end if;
  insert into invoice (customer_id, invoice_date, billing_city, total)
    select customer_id, _date, city, 0 from customer where customer_id = _customer_id
    returning invoice.invoice_id into new_id;
  if new_id is null then raise exception 'Customer % is not known', _customer_id; end if;
  insert into invoice_line (invoice_id, track_id, unit_price, quantity)
    select new_id, t.track_id, t.unit_price, l.quantity
    from jsonb_populate_recordset(null::order_line, _lines) l join track t on t.track_id = l.track_id;
  return query
    update invoice i set total = s.total
    from (select sum(unit_price * quantity) total, count(*)::int lines from invoice_line where
          invoice_line.invoice_id = new_id) s
    where i.invoice_id = new_id returning i.invoice_id, i.total, s.lines;
end $$;
comment on function write_invoice(int, jsonb, timestamp) is E'HTTP POST /invoices\\nsingle';

create function invoice_lines(_invoice_id int) returns table(track text, unit_price numeric, quantity int)
language sql stable as $$
  select t.name::text, l.unit_price, l.quantity
  from invoice_line l join track t using (track_id) where l.invoice_id = _invoice_id order by invoice_line_id
$$;
comment on function invoice_lines(int) is 'HTTP GET /invoices/{_invoice_id}/lines';

create function remove_invoice(_invoice_id int) returns void language sql volatile as $$
  delete from invoice_line where invoice_id = _invoice_id; delete from invoice where invoice_id = _invoice_id;
$$;
comment on function remove_invoice(int) is 'HTTP DELETE /invoices/{_invoice_id}';

create function sales_by_country() returns table(country text, customers int, total numeric) language sql stable as $$
  select billing_country::text, count(distinct customer_id)::int, sum(total)
  from invoice group by 1 order by 3 desc, 1 limit 2
$$;
comment on function sales_by_country() is 'HTTP GET /sales';
"""


def _chinook() -> Path | None:
    places = [ROOT.parent / "shared", Path(os.environ.get("ROWCALL_SHARED", "/work/shared"))]
    return next((found for place in places if (found := place / "data" / "chinook.sql").exists()), None)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    sample = _chinook()
    if sample is None:
        pytest.skip("the Chinook sample is not here: ../shared/data/chinook.sql beside the repository")
    database.execute(sample.read_text())
    return serve(database, FUNCTIONS)


def test_artist_comes_with_albums_and_their_tracks(service: Service) -> None:
    assert answer(service.get("/artists/1")) == (
        200,
        JSON,
        '{"artistId":1,"name":"AC/DC","albums":['
        '{"albumId":1,"title":"For Those About To Rock We Salute You","tracks":['
        '{"name":"For Those About To Rock (We Salute You)","seconds":343.7},'
        '{"name":"Put The Finger On You","seconds":205.7}]},'
        '{"albumId":4,"title":"Let There Be Rock","tracks":['
        '{"name":"Go Down","seconds":331.2},{"name":"Dog Eat Dog","seconds":215.2}]}]}',
    )


def test_artist_without_albums_has_an_empty_list(service: Service) -> None:
    assert service.get("/artists/25").json()["albums"] == []


def test_names_beyond_ascii_arrive_whole(service: Service) -> None:
    assert "Antônio Carlos Jobim" in service.get("/artists/6").text


@pytest.mark.parametrize(
    ("query", "tracks"),
    [
        ("", [1, 2, 3]),
        ("?limit=1", [1]),
        ("?name=rock&limit=2", [1, 17]),
        ("?genre=Jazz&limit=2", [63, 64]),
        ("?genre=Jazz&name=boogie&limit=5", [626, 630, 634]),
        ("?maxSeconds=5", [168, 2461]),
        ("?name=nothing-like-it", []),
    ],
)
def test_search_takes_any_of_its_parameters(service: Service, query: str, tracks: list[int]) -> None:
    response = service.get(f"/tracks{query}")
    assert [track["trackId"] for track in response.json()] == tracks


def test_search_refuses_what_it_does_not_know(service: Service) -> None:
    assert "artist" in problem(service.get("/tracks?artist=AC/DC"), 404)["detail"]


def test_invoice_is_written_read_and_removed(service: Service, database: Database) -> None:
    lines = [{"track_id": 1, "quantity": 2}, {"track_id": 3, "quantity": 1}]
    response = service.post("/invoices", json={"customerId": 5, "lines": lines})
    invoice = response.json()["invoiceId"]
    assert answer(response) == (200, JSON, f'{{"invoiceId":{invoice},"total":2.97,"lines":2}}')
    assert answer(service.get(f"/invoices/{invoice}/lines"))[2] == (
        '[{"track":"For Those About To Rock (We Salute You)","unitPrice":0.99,"quantity":2},'
        '{"track":"Fast As a Shark","unitPrice":0.99,"quantity":1}]'
    )
    assert database.value("select billing_city from invoice where invoice_id = %s", invoice) == "Prague"
    assert answer(service.request("DELETE", f"/invoices/{invoice}")) == (204, None, "")
    assert answer(service.get(f"/invoices/{invoice}/lines")) == (200, JSON, "[]")


@pytest.mark.parametrize(
    ("invoice", "title"),
    [
        ({"customerId": 5, "lines": []}, "An invoice needs at least one line"),
        ({"customerId": 999, "lines": [{"track_id": 1, "quantity": 1}]}, "Customer 999 is not known"),
    ],
)
def test_invoice_that_makes_no_sense_changes_nothing(
    service: Service, database: Database, invoice: dict[str, object], title: str
) -> None:
    before = database.value("select count(*) from invoice")
    assert problem(service.post("/invoices", json=invoice), 400)["title"] == title
    assert database.value("select count(*) from invoice") == before


def test_sums_keep_their_digits(service: Service) -> None:
    assert answer(service.get("/sales"))[2] == (
        '[{"country":"USA","customers":13,"total":523.06},{"country":"Canada","customers":8,"total":303.96}]'
    )
