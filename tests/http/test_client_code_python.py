"""Generated Python: checked by mypy --strict, and calling the service with and without asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.python_client import load_client, type_errors
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type geo as (lat numeric, lon numeric);
create type span as (low int, high int);
create function next_orders() returns table (order_id int, sequence span) language sql stable as
    $$ select 1, row(1, 2)::span $$;
comment on function next_orders is 'HTTP GET
nested';
create type stop as (label text, at geo);
create function advised() returns void language plpgsql as
    $$ begin raise 'too heavy' using errcode = 'P0400', hint = 'Weigh it again.'; end $$;
comment on function advised() is 'HTTP';
create function ping_depot() returns void language sql as '';
comment on function ping_depot() is 'HTTP';
create function get_count(_n int) returns int language sql as 'select _n';
comment on function get_count is 'HTTP';
create function is_gate_open() returns boolean language sql as 'select true';
comment on function is_gate_open() is 'HTTP';
create function get_settings(_in jsonb) returns jsonb language sql as 'select _in';
comment on function get_settings is 'HTTP';
create function get_logo() returns bytea language sql stable as $$ select '\\x47ff00'::bytea $$;
comment on function get_logo() is 'HTTP GET';
create function as_sheet() returns table (a int) language sql stable as 'select 1';
comment on function as_sheet() is 'HTTP GET
table_format = excel';
create function get_numbers() returns int[] language sql as 'select array[1,null]';
comment on function get_numbers() is 'HTTP';
create function get_names() returns setof text language sql as $$ values ('a'), (null) $$;
comment on function get_names() is 'HTTP';
create function find_parcels(_depot text, _tags text[] default null, "_from" bigint default 7)
    returns table (parcel_id bigint, flags jsonb, weight float8, "from" bigint, "list" int) language sql stable as
    $$ select 9007199254740993, to_jsonb(_tags), 1.5::float8, _from, 1 where _depot = 'north' $$;
comment on function find_parcels is E'HTTP GET\\nParcels of a depot, with "quotes" and \\\\ signs.';
create function find_parcel(_depot text, _parcel_id bigint, _verbose boolean default false) returns text
    language sql stable as $$ select concat_ws('|', _depot, _parcel_id, _verbose) $$;
comment on function find_parcel is 'HTTP GET /api/depots/{_depot}/parcels/{_parcel_id}';
create function append_note(_parcel_id bigint, _note text) returns text language sql as
    $$ select _parcel_id || _note $$;
comment on function append_note is 'HTTP POST
body_parameter_name note';
create function list_routes() returns table (route_id int, depot geo, stops stop[]) language sql stable as
    $$ select 1, row(1,2)::geo, array[row('a', row(3,4)::geo)::stop] $$;
comment on function list_routes() is 'HTTP GET
nested';
create function lambda(_class int) returns int language sql strict as 'select _class';
comment on function lambda is 'HTTP';
create function failing() returns int language sql as 'select 1/0';
comment on function failing() is 'HTTP GET';
create function sign_in(_name text) returns table (user_id int, user_name text) language sql as 'select 7, _name';
comment on function sign_in is 'HTTP
login';
create function who() returns text language sql stable as $$ select current_setting('request.user_name', true) $$;
comment on function who() is 'HTTP GET
authorize
user_context';
create table files_seen (meta json);
create function import_manifest(_note text, _meta json default null) returns json language sql as
    'insert into files_seen values (_meta); select _meta';
comment on function import_manifest is 'HTTP
upload
param _meta is upload metadata';
create function import_note(_note int, _meta json default null) returns json language sql strict as 'select _meta';
comment on function import_note is 'HTTP
upload
param _meta is upload metadata';
create function reindex(_depot text) returns int language sql as 'select 1';
comment on function reindex is 'HTTP
sse';
create function gauge(_place int default 1) returns void language plpgsql as
    $$ begin raise info 'place %', _place; end $$;
comment on function gauge is 'HTTP POST /gauge/{_place?}
sse
sse_last_value';
create function reindex_events() returns int language sql as 'select 1';
comment on function reindex_events() is 'HTTP';
"""
P = "Service:PythonClientCodeGen:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, folder: Path) -> Service:
    settings = {
        P + "Enabled": "true",
        P + "FilePath": str(folder / "{0}_api.py"),
        P + "CustomHeaders:X-Version": "'1.4'",
        "Auth:CookieAuth": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:TableFormatOptions:Enabled": "true",
        "Service:AuthenticationOptions:ContextKeyClaimsMapping:request.user_name": "user_name",
    }
    return serve(database, SQL, settings)


@pytest.fixture(scope="module")
def api(service: Service, folder: Path) -> Any:
    return load_client(folder / "public_api.py")


USE = """
from typing import assert_type
import public_api as api

client = api.Client()
assert_type(client.find_parcels(depot="north", tags=["a", None]), list[api.FindParcelsResponse])
assert_type(client.get_count(n=1), int | None)
assert_type(client.get_names(), list[str | None])
assert_type(client.list_routes()[0]["stops"], list[api.Stops] | None)
assert_type(client.ping_depot(), None)
assert_type(client.reindex_events(), int | None)
next(client.reindex_events1())
async def use(other: api.AsyncClient) -> None:
    assert_type(await other.depots_depot_parcels_parcel_id(depot="a", parcel_id=1), str)
"""


@pytest.mark.slow
def test_generated_python_passes_mypy_strict(api: Any, folder: Path) -> None:
    assert (folder / "py.typed").read_bytes() == b""
    (folder / "use.py").write_text(USE, encoding="utf-8")
    assert type_errors(folder, "public_api.py", "use.py") == ""


PARCEL = {"parcelId": 9007199254740993, "flags": ["a b", "ж&"], "weight": 1.5, "from": 7, "list": 1}
CALLS: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("ping_depot", {}, None),
    ("get_count", {"n": 3}, 3),
    ("get_count", {"n": None}, None),
    ("is_gate_open", {}, True),
    ("get_settings", {"in_": {"a": [1, True, None]}}, {"a": [1, True, None]}),
    ("get_numbers", {}, [1, None]),
    ("get_names", {}, ["a", None]),
    ("find_parcels", {"depot": "north", "tags": ["a b", "ж&"]}, [PARCEL]),
    ("find_parcels", {"depot": "south", "from_": 8}, []),
    ("depots_depot_parcels_parcel_id", {"depot": "a b&c", "parcel_id": 7, "verbose": True}, "a b&c|7|t"),
    ("append_note", {"parcel_id": 1, "note": "text & more"}, "1text & more"),
    (
        "list_routes",
        {},
        [{"routeId": 1, "depot": {"lat": 1, "lon": 2}, "stops": [{"label": "a", "at": {"lat": 3, "lon": 4}}]}],
    ),
    ("next_orders", {}, [{"orderId": 1, "sequence": {"low": 1, "high": 2}}]),
    ("lambda_", {"class_": 4}, 4),
    ("lambda_", {"class_": None}, None),
)


def test_client_returns_values_of_the_database(api: Any) -> None:
    with api.Client() as client:
        assert [getattr(client, name)(**values) for name, values, _ in CALLS] == [value for _, _, value in CALLS]


@pytest.mark.slow
def test_async_client_returns_values_of_the_database(api: Any) -> None:
    async def call() -> list[Any]:
        async with api.AsyncClient() as client:
            return [await getattr(client, name)(**values) for name, values, _ in CALLS]

    assert asyncio.run(call()) == [value for _, _, value in CALLS]


def test_failures_raise_api_error_with_the_problem(api: Any) -> None:
    with api.Client() as client, pytest.raises(api.ApiError) as raised:
        client.failing()
    assert (raised.value.status, raised.value.problem["status"]) == (500, 500)


def test_api_error_has_hint_and_errors_per_parameter(api: Any) -> None:
    with api.Client() as client:
        with pytest.raises(api.ApiError) as raised:
            client.get_count(n="many")
        assert raised.value.errors == [{"parameter": "n", "path": "n", "message": raised.value.errors[0]["message"]}]
        assert raised.value.hint is None
        with pytest.raises(api.ApiError) as raised:
            client.advised()
        assert (raised.value.hint, raised.value.errors) == ("Weigh it again.", [])


def test_client_stays_signed_in_after_sign_in(api: Any) -> None:
    with api.Client() as client:
        with pytest.raises(api.ApiError, match="401"):
            client.who()
        client.sign_in(name="kiri")
        assert client.who() == "kiri"


def test_event_stream_of_a_path_with_an_optional_parameter_is_opened(api: Any) -> None:
    with api.Client() as client:
        client.gauge_place(place=3)
        # The stream begins with the latest event.
        assert next(client.gauge_place_events()) == "place 3"


def test_bytes_are_returned_with_the_response(api: Any) -> None:
    with api.Client() as client:
        assert client.get_logo().content == b"G\xff\0"
        assert client.as_sheet().content.startswith(b"PK\x03\x04")


def test_files_are_sent(api: Any) -> None:
    with api.Client() as client:
        (result,) = client.import_manifest([("a.txt", b"hello")], note="x")
    assert (result["fileName"], result["size"], result["success"]) == ("a.txt", 5, True)
    # The STRICT routine is not called with NULL.
    with api.Client() as client:
        assert client.import_note([("a.txt", b"hello")], note=None) is None
    # A member that `UploadedFile` does not have.
    assert result["oid"] > 0


def test_the_docstring_contains_the_comment(api: Any) -> None:
    text = api.Client.find_parcels.__doc__
    assert text.startswith("GET /api/find-parcels\n")
    assert 'Parcels of a depot, with "quotes" and \\ signs.' in text
