"""Names of generated functions do not depend on the order of routines, and never move to another endpoint."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rowcall.core.codegen.dart.files import dart_names
from rowcall.core.codegen.files import client_names
from rowcall.core.codegen.options import ClientCodeOptions, DartOptions, PythonOptions
from rowcall.core.codegen.python.files import python_names
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.options.capabilities.client_code import client_code_options
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot, settings_of

SQL = """
create function thing() returns int language sql as 'select 1';
comment on function thing() is 'HTTP GET /api/thing';
create function another() returns int language sql as 'select 1';
comment on function another() is 'HTTP GET /api/another';
create function find(_id int) returns int language sql as 'select 1';
comment on function find(int) is 'HTTP GET /api/find';
create function pathless() returns int language sql as 'select 1';
comment on function pathless() is 'HTTP GET';
create function slash() returns int language sql as 'select 1';
comment on function slash() is 'HTTP GET /api/gate/open';
"""
ADDED = """
create function a_drop_thing() returns int language sql as 'select 2';
comment on function a_drop_thing() is 'HTTP DELETE /api/thing';
create function find() returns int language sql as 'select 2';
comment on function find() is 'HTTP GET /api/find';
create function find(_id int, _name text) returns int language sql as 'select 2';
comment on function find(int, text) is 'HTTP GET /api/find';
create function a_hyphen() returns int language sql as 'select 2';
comment on function a_hyphen() is 'HTTP GET /api/gate-open';
"""


def names(endpoints: Sequence[Endpoint]) -> dict[str, str]:
    options = ClientCodeOptions("{0}.ts", schema_names=False)
    return {f"{item.method} {item.routine.identity}": name for item, name in client_names(endpoints, options)}


@pytest.fixture(scope="module")
def alone(database: Database) -> Sequence[Endpoint]:
    database.execute(SQL)
    return read_snapshot(database).endpoints


@pytest.fixture(scope="module")
def endpoints(database: Database, alone: Sequence[Endpoint]) -> Sequence[Endpoint]:
    database.execute(ADDED)
    return read_snapshot(database).endpoints


def test_names_are_qualified_by_distinguishing_properties(
    alone: Sequence[Endpoint], endpoints: Sequence[Endpoint]
) -> None:
    assert names(alone) == {
        "GET public.thing()": "thing",
        "GET public.another()": "another",
        "GET public.find(integer)": "find",
        "GET public.pathless()": "pathless",
        "GET public.slash()": "gateOpen",
    }
    assert names(endpoints) == {
        "GET public.thing()": "thingGet",
        "DELETE public.a_drop_thing()": "thingDelete",
        "GET public.another()": "another",
        "GET public.pathless()": "pathless",
        "GET public.find()": "findWithoutParameters",
        "GET public.find(integer)": "findById",
        "GET public.find(integer, text)": "findByIdAndName",
        "GET public.slash()": "gateOpenPublicSlash",
        "GET public.a_hyphen()": "gateOpenPublicAHyphen",
    }


@pytest.mark.parametrize("prefix", ["api", "/api/", "/Api_V1", ""])
def test_names_lack_the_prefix_in_any_spelling(database: Database, alone: Sequence[Endpoint], prefix: str) -> None:
    settings = {
        "Service:UrlPathPrefix": prefix,
        "Service:ClientCodeGen:Enabled": "true",
        "Service:ClientCodeGen:FilePath": "{0}.ts",
        "Service:ClientCodeGen:IncludeSchemaInNames": "false",
    }
    options = client_code_options(settings_of(database, settings), ())
    assert options is not None
    endpoints = read_snapshot(database, settings).endpoints
    (name,) = (name for item, name in client_names(endpoints, options) if item.routine.name == "pathless")
    assert name == "pathless"


def test_new_endpoints_do_not_take_over_existing_names(
    alone: Sequence[Endpoint], endpoints: Sequence[Endpoint]
) -> None:
    before, after = names(alone), names(endpoints)
    assert not [name for key, name in after.items() if name in before.values() and before.get(key) != name]


def test_names_are_independent_of_the_order_of_routines(endpoints: Sequence[Endpoint]) -> None:
    typescript = ClientCodeOptions("{0}.ts")
    dart, python = DartOptions("{0}.dart"), PythonOptions("{0}.py", schema_names=True)
    result, backwards = (
        [
            sorted((id(item), name) for item, name in pairs)
            for pairs in (client_names(order, typescript), dart_names(order, dart), python_names(order, python))
        ]
        for order in (endpoints, endpoints[::-1])
    )
    assert result == backwards
    assert len({name for _, name in result[0]}) == len(endpoints)
    assert {"public_thing_get", "public_thing_delete"} <= {name for _, name in result[2]}
    assert {"publicThingGet", "publicThingDelete"} <= {name for _, name in result[1]}
