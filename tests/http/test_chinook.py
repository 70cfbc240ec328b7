"""A well-known database: nested results, a write, a search with optional parameters, and most annotations
about requests.

The tables are those of the Chinook sample; `FUNCTIONS` contains everything that makes it an API.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rowcall.core.annotations.declaration import Draft
from rowcall.core.building.comments import read_comment
from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.launcher import ROOT
from tests.harness.service import Service
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
comment on function artist_with_albums(int) is 'An artist and all albums.
HTTP GET /artists/{_artist_id}
single
Cache-Control: public, max-age=3600
X-Artist: {_artist_id}';

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
comment on function find_tracks(text, text, int, int) is 'HTTP GET /tracks
query_string_null_handling empty_string
param _max_seconds is shorterThan
buffer_rows 1';

create function pick_tracks(_wanted int[]) returns table(track_id int, name text) language sql stable as
$$ select t.track_id, t.name from track t where t.track_id = any(_wanted) order by 1 $$;
comment on function pick_tracks(int[]) is 'A query that is too long for an address.
HTTP QUERY /tracks
request_param_type body_json';

create function price_list() returns table(name text, unit_price numeric) language sql stable as $$
  select name, unit_price from track order by track_id limit 2
$$;
comment on function price_list() is 'HTTP GET /price-list
raw
separator ;
new_line \\n
columns
Content-Type: text/csv
Content-Disposition: attachment; filename=prices.csv';

create function album_table(_artist_id int, _format text default null) returns table(title text, tracks bigint)
language sql stable as $$
  select title, count(*) from album join track using (album_id) where artist_id = _artist_id
  group by album_id order by 1
$$;
comment on function album_table(int, text) is 'HTTP GET /artists/{_artist_id}/albums
table_format = {_format}
excel_file_name = Albums of {_artist_id}
excel_sheet = Albums';

create type place as (city text, country text);
create function customer_card(_customer_id int) returns table(first_name text, home place) language sql stable as $$
  select first_name, (city, country)::place from customer where customer_id = _customer_id
$$;
comment on function customer_card(int) is 'HTTP GET /customers/{_customer_id}
nested
single
for procedure
disabled';

create function composer_of(_track_id int) returns text language sql stable as $$
  select composer from track where track_id = _track_id
$$;
comment on function composer_of(int) is 'HTTP GET /tracks/{_track_id}/composer
text_response_null_handling no_content';

create table review (track_id int references track, stars int not null check (stars between 1 and 5), body text);
create function review_track(_track_id int, _stars int, _body text) returns void language sql as $$
  insert into review values (_track_id, _stars, _body)
$$;
comment on function review_track(int, int, text) is 'The review is the body of the request.
HTTP POST /tracks/{_track_id}/reviews
body_parameter_name _body
validate _body using not_empty
error_code_policy shop';

create function take_review_back(_track_id int) returns int language sql as $$
  delete from review where track_id = _track_id returning stars
$$;
comment on function take_review_back(int) is 'HTTP DELETE /tracks/{_track_id}/reviews
request_param_type query_string
void';

create function who_listens(_agent json default null) returns text language sql stable as $$
  select _agent ->> 'User-Agent'
$$;
comment on function who_listens(json) is 'HTTP
path /listener
request_headers_mode parameter
request_headers_parameter_name _agent';

create sequence busy;
create function reindex_catalogue() returns int language plpgsql as $$
declare attempt int = nextval('busy');
begin
  if attempt = 1 then raise exception 'another session holds the lock' using errcode = '55P03'; end if;
  return attempt;
end $$;
comment on function reindex_catalogue() is 'HTTP POST /catalogue/index
retry_strategy at once';

create function count_everything() returns bigint language sql stable as $$
  select count(*) from track, pg_sleep(60)
$$;
comment on function count_everything() is 'HTTP GET /catalogue/count
timeout 200ms';

create function margin() returns numeric language sql stable as 'select 0.3';
comment on function margin() is 'HTTP GET /margin
internal';

create function wipe() returns void language sql as 'select null';
comment on function wipe() is 'HTTP POST /wipe
disabled
enabled procedure';

create function sign_in(_email text, _phone text) returns table(user_id int, user_name text, user_roles text[])
language sql stable as $$
  select employee_id, first_name::text, array['staff'] from employee where email = _email and phone = _phone
$$;
comment on function sign_in(text, text) is 'HTTP POST /sign-in
login
allow_anonymous
sensitive';

create function sign_out() returns void language sql as '';
comment on function sign_out() is 'HTTP POST /sign-out
logout';

create function my_customers(_user_id text default null) returns bigint language sql stable as $$
  select count(*) from customer where support_rep_id = _user_id::int
$$;
comment on function my_customers(text) is 'HTTP GET /my/customers
authorize staff, manager
user_parameters';

create function my_name() returns text language sql stable as $$
  select current_setting('request.user_name', true)
$$;
comment on function my_name() is 'HTTP GET /my/name
authorize
user_context';

create function my_office(_city text, _user_id text default null) returns text language sql stable as 'select _city';
comment on function my_office(text, text) is 'HTTP GET /my/office
authorize
user_parameters
_city = select city from employee where employee_id = {_user_id}::int';

create function contact(_customer_id int, _rep text) returns text language sql stable as $$
  select first_name || ' knows a ' || _rep from customer where customer_id = _customer_id
$$;
comment on function contact(int, text) is 'HTTP GET /customers/{_customer_id}/contact
_rep = select title from employee join customer on employee_id = support_rep_id where customer_id = {_customer_id}';

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


SETTINGS = {
    "Auth:CookieAuth": "true",
    "Service:TableFormatOptions:Enabled": "true",
    "Service:TableFormatOptions:HtmlHeader": "",
    "ErrorHandlingOptions:ErrorCodePolicies:0:Name": "shop",
    "ErrorHandlingOptions:ErrorCodePolicies:0:ErrorCodes:23503:StatusCode": "404",
    "ErrorHandlingOptions:ErrorCodePolicies:0:ErrorCodes:23514:StatusCode": "422",
    "ErrorHandlingOptions:ErrorCodePolicies:1:Name": "Default",
    "ErrorHandlingOptions:ErrorCodePolicies:1:ErrorCodes:P0001:StatusCode": "400",
    "CommandRetryOptions:Strategies:at once:RetrySequenceSeconds:0": "0",
}


def _chinook() -> Path | None:
    places = [ROOT.parent / "shared", Path(os.environ.get("ROWCALL_SHARED", "/work/shared"))]
    return next((result for place in places if (result := place / "data" / "chinook.sql").exists()), None)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    sample = _chinook()
    if sample is None:
        pytest.skip("the Chinook sample is not here: ../shared/data/chinook.sql beside the repository")
    database.execute(sample.read_text())
    return serve(database, FUNCTIONS, SETTINGS, workers=2)


def test_artist_has_nested_albums_and_tracks(service: Service) -> None:
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


def test_non_ascii_names_are_returned_unchanged(service: Service) -> None:
    assert "Antônio Carlos Jobim" in service.get("/artists/6").text


@pytest.mark.parametrize(
    ("query", "tracks"),
    [
        ("", [1, 2, 3]),
        ("?limit=1", [1]),
        ("?name=rock&limit=2", [1, 17]),
        ("?genre=Jazz&limit=2", [63, 64]),
        ("?genre=Jazz&name=boogie&limit=5", [626, 630, 634]),
        ("?shorterThan=5", [168, 2461]),
        ("?shorterThan=&genre=&name=rock&limit=2", [1, 17]),
        ("?name=nothing-like-it", []),
    ],
)
def test_search_takes_any_of_its_parameters(service: Service, query: str, tracks: list[int]) -> None:
    response = service.get(f"/tracks{query}")
    assert [track["trackId"] for track in response.json()] == tracks


def test_search_refuses_unknown_parameters(service: Service) -> None:
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
def test_invalid_invoice_is_refused_without_effect(
    service: Service, database: Database, invoice: dict[str, object], title: str
) -> None:
    before = database.value("select count(*) from invoice")
    assert problem(service.post("/invoices", json=invoice), 400)["title"] == title
    assert database.value("select count(*) from invoice") == before


def test_sums_preserve_all_digits(service: Service) -> None:
    assert answer(service.get("/sales"))[2] == (
        '[{"country":"USA","customers":13,"total":523.06},{"country":"Canada","customers":8,"total":303.96}]'
    )


def test_artist_response_has_caching_headers(service: Service) -> None:
    headers = service.get("/artists/1").headers
    assert (headers["cache-control"], headers["x-artist"]) == ("public, max-age=3600", "1")


def test_query_method_takes_a_long_search_in_its_body(service: Service) -> None:
    response = service.request("QUERY", "/tracks", json={"wanted": [3, 1]})
    assert answer(response)[2] == (
        '[{"trackId":1,"name":"For Those About To Rock (We Salute You)"},{"trackId":3,"name":"Fast As a Shark"}]'
    )


def test_price_list_is_a_csv_download(service: Service) -> None:
    response = service.get("/price-list")
    assert answer(response) == (
        200,
        "text/csv",
        '"name";"unit_price"\n"For Those About To Rock (We Salute You)";0.99\n"Balls to the Wall";0.99',
    )
    assert response.headers["content-disposition"] == "attachment; filename=prices.csv"


def test_albums_are_available_as_json_html_and_spreadsheet(service: Service) -> None:
    assert service.get("/artists/1/albums").json()[1] == {"title": "Let There Be Rock", "tracks": 8}
    assert service.get("/artists/1/albums?format=html").text.endswith(
        "<tr><td>Let There Be Rock</td><td>8</td></tr></table>"
    )
    workbook = service.get("/artists/1/albums?format=excel")
    assert workbook.headers["content-disposition"] == 'attachment; filename="Albums of 1.xlsx"'
    assert workbook.content.startswith(b"PK")


def test_composite_column_of_a_customer_is_nested(service: Service) -> None:
    assert service.get("/customers/5").json() == {
        "firstName": "František",
        "home": {"city": "Prague", "country": "Czech Republic"},
    }


def test_null_composer_returns_204(service: Service) -> None:
    assert answer(service.get("/tracks/1/composer")) == (200, TEXT, "Angus Young, Malcolm Young, Brian Johnson")
    assert answer(service.get("/tracks/63/composer")) == (204, None, "")


def test_review_is_inserted_and_deleted(service: Service, database: Database) -> None:
    response = service.post("/tracks/1/reviews?stars=5", content="Rocks; it's loud.")
    assert answer(response) == (204, None, "")
    assert database.fetch("select * from review") == [(1, 5, "Rocks; it's loud.")]
    assert answer(service.request("DELETE", "/tracks/1/reviews")) == (204, None, "")
    assert database.fetch("select * from review") == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/tracks/1/reviews?stars=6", "Too good", 422),
        ("/tracks/99999/reviews?stars=3", "Which one?", 404),
        ("/tracks/1/reviews?stars=3", "", 400),
        ("/tracks/1/reviews?stars=many", "Good", 400),
        ("/tracks/1/reviews", "Good", 404),
    ],
)
def test_invalid_review_is_refused(service: Service, database: Database, path: str, body: str, status: int) -> None:
    problem(service.post(path, content=body), status)
    assert database.fetch("select * from review") == []


def test_routine_receives_request_headers(service: Service) -> None:
    assert answer(service.get("/listener", headers={"User-Agent": "gramophone"})) == (200, TEXT, "gramophone")


def test_transient_error_is_retried(service: Service) -> None:
    assert answer(service.post("/catalogue/index")) == (200, TEXT, "2")


def test_statement_beyond_its_timeout_gets_504(service: Service) -> None:
    problem(service.get("/catalogue/count"), 504)


@pytest.mark.parametrize(("method", "path"), [("GET", "/margin"), ("POST", "/wipe")])
def test_internal_endpoints_return_404(service: Service, method: str, path: str) -> None:
    problem(service.request(method, path), 404)


JANE = {"email": "jane@chinookcorp.com", "phone": "+1 (403) 262-3443"}


def test_staff_signs_in_and_out(service: Service) -> None:
    with service.new_client() as jane:
        problem(jane.get("/my/customers"), 401)
        assert jane.post("/sign-in", json=JANE).status_code == 200
        assert answer(jane.get("/my/customers?userId=1")) == (200, TEXT, "21")
        assert answer(jane.get("/my/office?city=Paris&userId=1")) == (200, TEXT, "Calgary")
        assert answer(jane.get("/my/name")) == (200, TEXT, "Jane")
        assert jane.post("/sign-out").status_code == 200
        problem(jane.get("/my/name"), 401)


def test_wrong_credentials_are_refused(service: Service) -> None:
    problem(service.post("/sign-in", json={**JANE, "phone": "' or true --"}), 401)


def test_resolved_parameter_ignores_the_value_of_the_client(service: Service) -> None:
    contact = "František knows a Sales Support Agent"
    assert answer(service.get("/customers/5/contact?rep=Unknown")) == (200, TEXT, contact)


def test_chinook_comments_use_many_annotations() -> None:
    """Count the annotations with an effect in the comments above."""
    used: set[str] = set()
    for comment in re.findall(r"is E?'((?:[^']|'')*)';", FUNCTIONS):
        draft = Draft(name="chinook", method="GET", tags=frozenset({"function"}))
        read_comment(comment.replace("\\n", "\n"), draft)
        used |= set(draft.used)
    assert len(used) >= 20
