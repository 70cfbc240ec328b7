"""Tables as endpoints: what each operation does, over a socket (tables-1 to tables-14)."""

from __future__ import annotations

import itertools

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

TABLES = {"Service:CrudSource:Enabled": "true"}

SQL = """
create table crate (
    crate_id int primary key,
    label text not null,
    weight numeric(6, 2),
    packed boolean not null default false,
    tags text[] default '{new}',
    tenth int generated always as (crate_id * 10) stored
);
comment on table crate is 'HTTP';

create table ticket (ticket_id int generated always as identity primary key, title varchar(5), unique (title));
comment on table ticket is 'HTTP';

create table line (invoice int, line_no int, text text, primary key (invoice, line_no));
comment on table line is 'HTTP';

create table sweepable (part int, piece int, note text, primary key (part, piece));
comment on table sweepable is 'HTTP
allow_unfiltered';

create table link (a int, b int, primary key (a, b));
comment on table link is 'HTTP';

create table "Odd ""Name" ("we""ird; drop table crate; --" int primary key, "select" text, "Camel Case" text);
comment on table "Odd ""Name" is 'HTTP /odd';

create table parcel (id int primary key, label text);
comment on table parcel is 'HTTP
for delete, on_conflict
disabled
for select
HTTP GET /parcels/{id?}
for update
HTTP POST /parcels/{id}';

create table unkeyed (a int, b text);
comment on table unkeyed is 'HTTP';

create table unexposed (a int primary key);
comment on table unexposed is 'Just a table.';

create table same (a int primary key);
insert into same values (1);
comment on table same is 'HTTP GET /same';

create table guarded (a int primary key);
comment on table guarded is 'HTTP
authorize
for select
allow_anonymous';
"""

_numbers = itertools.count(1000)


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve) -> Service:
    return serve(every_database, SQL, TABLES, workers=2)


@pytest.fixture
def number() -> int:
    """A key that no other test uses."""
    return next(_numbers)


@pytest.fixture
def crate(service: Service, number: int) -> int:
    """A row of one's own."""
    assert service.request("PUT", "/api/crate", json={"crateId": number, "label": "own"}).status_code == 204
    return number


def crates(service: Service, number: int) -> list[dict[str, object]]:
    body: list[dict[str, object]] = service.get(f"/api/crate?crateId={number}").json()
    return body


class TestSelect:
    def test_gives_all_columns_under_their_names(self, service: Service, crate: int) -> None:
        row = f'{{"crateId":{crate},"label":"own","weight":null,"packed":false,"tags":["new"],"tenth":{crate * 10}}}'
        assert answer(service.get(f"/api/crate?crateId={crate}")) == (200, JSON, f"[{row}]")

    def test_filters_are_combined_with_and(self, service: Service, crate: int) -> None:
        assert crates(service, crate) == service.get(f"/api/crate?crateId={crate}&label=own&tenth={crate * 10}").json()
        assert service.get(f"/api/crate?crateId={crate}&label=other").json() == []

    def test_without_a_filter_gives_every_row(self, service: Service, crate: int) -> None:
        assert crate in {row["crateId"] for row in service.get("/api/crate").json()}

    def test_null_matches_no_row(self, service: Service, crate: int) -> None:
        assert service.get(f"/api/crate?crateId={crate}&weight=").json() == []

    def test_an_array_is_compared_as_a_whole(self, service: Service, number: int) -> None:
        row = {"crateId": number, "label": "x", "tags": ["a,b", None, "c"]}
        assert service.request("PUT", "/api/crate", json=row).status_code == 204
        query = f"crateId={number}&tags=a%2Cb&tags=null&tags=c"
        assert service.get(f"/api/crate?{query}").json() == []
        assert len(service.get(f"/api/crate?crateId={number}").json()) == 1

    def test_an_unknown_column_is_404(self, service: Service) -> None:
        assert "unknown parameter 'lable'" in problem(service.get("/api/crate?lable=x"), 404)["detail"]

    def test_a_value_that_does_not_convert_is_400_and_widens_nothing(self, service: Service) -> None:
        refused = problem(service.get("/api/crate?crateId=abc&label=own"), 400)
        message = "parameter 'crateId' (integer): 'abc' is not an integer"
        assert refused["detail"] == message
        assert refused["errors"] == [{"parameter": "crateId", "path": "crateId", "message": message}]


class TestInsert:
    def test_columns_left_out_get_their_defaults(self, service: Service, number: int) -> None:
        response = service.request("PUT", "/api/crate/returning", json={"crateId": number, "label": "x"})
        assert response.json() == [
            {"crateId": number, "label": "x", "weight": None, "packed": False, "tags": ["new"], "tenth": number * 10}
        ]

    def test_null_is_written_as_null(self, service: Service, number: int) -> None:
        row = {"crateId": number, "label": "x", "tags": None}
        assert service.request("PUT", "/api/crate/returning", json=row).json()[0]["tags"] is None

    @pytest.mark.parametrize("path", ["", "/returning", "/on-conflict-do-nothing", "/on-conflict-do-update/returning"])
    def test_a_required_column_that_is_missing_is_404(self, service: Service, number: int, path: str) -> None:
        refused = problem(service.request("PUT", f"/api/crate{path}", json={"crateId": number}), 404)
        assert refused["detail"] == "parameter 'label' (text) is required"
        assert crates(service, number) == []

    def test_null_in_a_not_null_column_is_400(self, service: Service, number: int) -> None:
        response = service.request("PUT", "/api/crate", json={"crateId": number, "label": None})
        refused = problem(response, 400)
        assert (refused["title"], refused["detail"]) == ("A value is missing in column 'label'", "23502")

    def test_errors_name_the_column_as_in_requests(self, service: Service) -> None:
        refused = problem(service.request("PUT", "/api/line", json={"invoice": 1, "lineNo": None}), 400)
        assert refused["title"] == "A value is missing in column 'lineNo'"
        assert refused["errors"][0]["parameter"] == "lineNo"

    def test_a_duplicate_key_is_409(self, service: Service, crate: int) -> None:
        response = service.request("PUT", "/api/crate", json={"crateId": crate, "label": "again"})
        assert problem(response, 409)["detail"] == "23505"

    def test_a_generated_column_cannot_be_inserted(self, service: Service, number: int) -> None:
        row = {"crateId": number, "label": "x", "tenth": 1}
        assert "'tenth'" in problem(service.request("PUT", "/api/crate", json=row), 404)["detail"]

    def test_without_a_column_is_404(self, service: Service) -> None:
        assert problem(service.request("PUT", "/api/unkeyed", json={}), 404)["detail"] == "an insert needs a column"

    def test_an_identity_is_generated_or_overridden(self, service: Service, number: int) -> None:
        made = service.request("PUT", "/api/ticket/returning", json={"title": "auto"}).json()
        assert made[0]["ticketId"] > 0
        chosen = service.request("PUT", "/api/ticket/returning", json={"ticketId": number, "title": "own"}).json()
        assert chosen == [{"ticketId": number, "title": "own"}]

    def test_a_text_that_is_too_long_is_refused_and_not_cut(self, service: Service, number: int) -> None:
        response = service.request("PUT", "/api/ticket", json={"ticketId": number, "title": "too long"})
        assert problem(response, 400)["detail"] == "22001"

    def test_a_value_of_the_wrong_type_writes_nothing(self, service: Service, number: int) -> None:
        row = {"crateId": number, "label": "x", "weight": True}
        refused = problem(service.request("PUT", "/api/crate", json=row), 400)
        message = "parameter 'weight' (numeric): 'true' is not a number"
        assert refused["errors"] == [{"parameter": "weight", "path": "weight", "message": message}]
        assert crates(service, number) == []


class TestConflict:
    def test_do_nothing_does_not_change_the_row(self, service: Service, crate: int) -> None:
        row = {"crateId": crate, "label": "other"}
        assert service.request("PUT", "/api/crate/on-conflict-do-nothing", json=row).status_code == 204
        assert service.request("PUT", "/api/crate/on-conflict-do-nothing/returning", json=row).json() == []
        assert crates(service, crate)[0]["label"] == "own"

    def test_do_nothing_inserts_a_new_row(self, service: Service, number: int) -> None:
        row = {"crateId": number, "label": "new"}
        response = service.request("PUT", "/api/crate/on-conflict-do-nothing/returning", json=row)
        assert response.json()[0]["label"] == "new"

    def test_do_update_changes_every_column_but_the_key(self, service: Service, crate: int) -> None:
        """Those that are not given get their defaults, as in an insert."""
        first = {"crateId": crate, "label": "heavy", "weight": 5}
        assert service.request("PUT", "/api/crate/on-conflict-do-update", json=first).status_code == 204
        assert crates(service, crate)[0]["weight"] == 5
        second = {"crateId": crate, "label": "light", "packed": True}
        changed = service.request("PUT", "/api/crate/on-conflict-do-update/returning", json=second).json()
        assert changed == [
            {
                "crateId": crate,
                "label": "light",
                "weight": None,
                "packed": True,
                "tags": ["new"],
                "tenth": crate * 10,
            }
        ]

    def test_do_update_without_columns_to_change_does_nothing(self, service: Service, number: int) -> None:
        row = {"a": number, "b": 1}
        assert service.request("PUT", "/api/link/on-conflict-do-update/returning", json=row).json() == [row]
        assert service.request("PUT", "/api/link/on-conflict-do-update/returning", json=row).json() == []

    def test_a_conflict_on_another_constraint_is_409(self, service: Service) -> None:
        title = {"title": "once"}
        assert service.request("PUT", "/api/ticket/on-conflict-do-nothing", json=title).status_code == 204
        assert problem(service.request("PUT", "/api/ticket/on-conflict-do-nothing", json=title), 409)


class TestUpdate:
    def test_only_the_given_columns_are_updated(self, service: Service, crate: int) -> None:
        assert service.post("/api/crate", json={"crateId": crate, "weight": "7.125"}).status_code == 204
        [row] = crates(service, crate)
        assert (row["label"], row["weight"]) == ("own", 7.13)

    def test_returning_gives_the_rows_changed(self, service: Service, crate: int) -> None:
        changed = service.post("/api/crate/returning", json={"crateId": crate, "label": "renamed"}).json()
        assert [row["label"] for row in changed] == ["renamed"]

    def test_null_is_set(self, service: Service, crate: int) -> None:
        assert service.post("/api/crate", json={"crateId": crate, "tags": None}).status_code == 204
        assert crates(service, crate)[0]["tags"] is None

    def test_a_null_or_missing_key_changes_nothing(self, service: Service, crate: int) -> None:
        for key in (None, -1):
            assert service.post("/api/crate/returning", json={"crateId": key, "label": "all?"}).json() == []
        assert crates(service, crate)[0]["label"] == "own"

    def test_without_a_key_is_404_and_changes_nothing(self, service: Service, crate: int) -> None:
        refused = problem(service.post("/api/crate", json={"label": "all?"}), 404)
        assert refused["detail"] == "an update needs a column of the key: crateId"
        assert crates(service, crate)[0]["label"] == "own"

    def test_a_part_of_the_key_changes_all_matching_rows(self, service: Service, number: int) -> None:
        for invoice, line in ((number, 1), (number, 2), (-number, 1)):
            service.request("PUT", "/api/line", json={"invoice": invoice, "lineNo": line, "text": "x"})
        assert service.post("/api/line", json={"invoice": number, "text": "all"}).status_code == 204
        assert [row["text"] for row in service.get(f"/api/line?invoice={number}").json()] == ["all", "all"]
        assert [row["text"] for row in service.get(f"/api/line?invoice={-number}").json()] == ["x"]

    def test_without_another_column_is_404(self, service: Service, crate: int) -> None:
        refused = problem(service.post("/api/crate", json={"crateId": crate}), 404)
        assert refused["detail"] == "an update needs a column besides those of the key"

    def test_a_generated_column_cannot_be_updated(self, service: Service, crate: int) -> None:
        assert problem(service.post("/api/crate", json={"crateId": crate, "tenth": 1}), 404)


class TestDelete:
    def test_rows_that_match_all_filters_are_deleted(self, service: Service, crate: int) -> None:
        assert service.request("DELETE", f"/api/crate?crateId={crate}&label=other").status_code == 204
        assert len(crates(service, crate)) == 1
        assert service.request("DELETE", f"/api/crate?crateId={crate}&label=own").status_code == 204
        assert crates(service, crate) == []

    def test_returning_gives_the_rows_removed(self, service: Service, crate: int) -> None:
        before = crates(service, crate)
        assert service.request("DELETE", f"/api/crate/returning?crateId={crate}").json() == before
        assert service.request("DELETE", f"/api/crate/returning?crateId={crate}").json() == []

    @pytest.mark.parametrize("path", ["/api/crate", "/api/crate/returning", "/api/crate?"])
    def test_without_a_column_is_404_and_removes_nothing(self, service: Service, crate: int, path: str) -> None:
        refused = problem(service.request("DELETE", path), 404)
        assert refused["detail"] == "a delete needs a column that says which rows are meant"
        assert len(crates(service, crate)) == 1

    @pytest.mark.parametrize(
        ("query", "status"), [("crateId=abc&label=own", 400), ("crateId=&label=own", 204), ("label=own&unknown=1", 404)]
    )
    def test_an_invalid_filter_deletes_no_row(self, service: Service, crate: int, query: str, status: int) -> None:
        assert service.request("DELETE", f"/api/crate?{query}").status_code == status
        assert len(crates(service, crate)) == 1


class TestAllowUnfiltered:
    def test_allow_unfiltered_permits_deletes_without_filter_but_no_updates(self, service: Service) -> None:
        for part, piece in ((1, 1), (1, 2), (2, 1)):
            service.request("PUT", "/api/sweepable", json={"part": part, "piece": piece})
        assert len(service.post("/api/sweepable/returning", json={"part": 1, "note": "x"}).json()) == 2
        assert problem(service.post("/api/sweepable", json={"note": "y"}), 404)
        assert len(service.request("DELETE", "/api/sweepable/returning").json()) == 3


HOSTILE = ["'; drop table crate; --", '"; drop table crate; --', "$1", "%s", "\\", "a\nb", "{}", "\N{SNOWMAN}"]


class TestNamesAndValues:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_values_are_never_sql(self, service: Service, number: int, text: str) -> None:
        row = {"crateId": number, "label": text}
        assert service.request("PUT", "/api/crate/returning", json=row).json()[0]["label"] == text
        body = service.client.get("/api/crate", params={"label": text, "crateId": number}).json()
        assert [item["crateId"] for item in body] == [number]

    def test_names_are_never_sql(self, service: Service, number: int) -> None:
        key = 'we"ird; drop table crate; --'
        row = {key: number, "select": "s", "Camel Case": "c"}
        assert service.request("PUT", "/odd", json=row).status_code == 204
        assert service.post("/odd", json={key: number, "select": "t"}).status_code == 204
        assert service.client.get("/odd", params={key: number}).json() == [{**row, "select": "t"}]
        assert service.client.delete("/odd", params={key: number, "Camel Case": "c"}).status_code == 204
        assert service.client.get("/odd", params={key: number}).json() == []
        assert service.get("/api/crate?crateId=-5").json() == []


class TestComments:
    def test_a_table_without_http_in_its_comment_is_not_served(self, service: Service) -> None:
        assert service.get("/api/unexposed").status_code == 404

    def test_blocks_of_a_comment_move_and_disable_operations(self, service: Service, number: int) -> None:
        row = {"id": number, "label": "x"}
        assert service.request("PUT", "/api/parcel", json=row).status_code == 204
        assert service.get(f"/parcels/{number}").json() == [row]
        assert service.get(f"/parcels?id={number}").json() == [row]
        assert service.post(f"/parcels/{number}", json={"label": "y"}).status_code == 204
        assert service.get(f"/parcels/{number}").json() == [{"id": number, "label": "y"}]
        assert service.request("DELETE", f"/api/parcel?id={number}").status_code == 405
        assert service.request("PUT", "/api/parcel/on-conflict-do-update", json=row).status_code == 404

    def test_a_path_value_that_does_not_convert_is_400(self, service: Service) -> None:
        for response in (service.get("/parcels/abc"), service.post("/parcels/abc", json={"label": "all?"})):
            assert [error["parameter"] for error in problem(response, 400)["errors"]] == ["id"]

    def test_authorize_outside_a_block_applies_to_all_other_operations(self, service: Service) -> None:
        assert service.get("/api/guarded").json() == []
        assert service.request("PUT", "/api/guarded", json={"a": 1}).status_code == 401
        assert service.request("DELETE", "/api/guarded?a=1").status_code == 401

    def test_a_method_for_all_operations_applies_only_where_it_is_possible(self, service: Service) -> None:
        assert service.get("/same?a=1").json() == [{"a": 1}]
        assert service.request("DELETE", "/same?a=1").status_code == 405

    def test_a_table_without_a_key_has_no_update(self, service: Service) -> None:
        assert service.request("PUT", "/api/unkeyed", json={"a": 1, "b": "x"}).status_code == 204
        assert service.post("/api/unkeyed", json={"a": 1, "b": "y"}).status_code == 405
        assert service.request("PUT", "/api/unkeyed/on-conflict-do-nothing", json={"a": 1}).status_code == 404
        assert service.get("/api/unkeyed?a=1").json() == [{"a": 1, "b": "x"}]
