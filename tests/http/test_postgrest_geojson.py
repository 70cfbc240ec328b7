"""GeoJSON of PostgREST's interface, with PostGIS.

Source: PostgREST's documentation, Resource Representation.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, Case, create_roles, error
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create schema api;
create table api.owner (id int primary key, name text); insert into api.owner values (1, 'Ada');
create table api.shop (id int primary key, label text, owner_id int references api.owner, at geometry(Point, 4326));
insert into api.shop values (1, 'tea', 1, 'SRID=4326;POINT(10.5 59.9)'), (2, 'bread', null, 'SRID=4326;POINT(24 57)');
create view api.tea as select * from api.shop where label = 'tea';
create function api.shops(first int) returns setof api.shop stable language sql as
  'select * from api.shop where id >= first order by id';
"""
OVERRIDE = {"PostgRest:TransactionEnd": "commit-allow-override"}
GEO = {"accept": "application/geo+json"}
TEA = {
    "type": "Feature",
    "geometry": {"type": "Point", "coordinates": [10.5, 59.9]},
    "properties": {"id": 1, "label": "tea", "owner_id": 1},
}
BREAD = {
    "type": "Feature",
    "geometry": {"type": "Point", "coordinates": [24, 57]},
    "properties": {"id": 2, "label": "bread", "owner_id": None},
}


def collection(*features: object) -> dict[str, object]:
    return {"type": "FeatureCollection", "features": [*features]}


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database) -> Service:
    try:
        database.execute("create extension postgis")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("PostGIS is not installed beside this PostgreSQL (Debian: postgresql-15-postgis-3)")
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {anonymous}; grant all on all tables in schema api to {anonymous}")
    return serve(database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous, **OVERRIDE})


@pytest.mark.parametrize(
    "case",
    [
        Case(
            "GET /shop?order=id",
            json=collection(TEA, BREAD),
            has={"content-type": "application/geo+json; charset=utf-8", "content-range": "0-1/*"},
            headers=GEO,
        ),
        Case("GET /tea", json=collection(TEA), headers=GEO),
        Case("GET /shop?id=eq.9", text='{"type" : "FeatureCollection", "features" : []}', headers=GEO),
        Case(
            "GET /shop?select=label,at,owner(name)&id=eq.1",
            json=collection({**TEA, "properties": {"label": "tea", "owner": {"name": "Ada"}}}),
            headers=GEO,
        ),
        Case("GET /shop?select=id", 400, error("22023", "geometry column is missing"), headers=GEO),
        Case("GET /owner", 400, error("22023", "geometry column is missing"), headers=GEO),
        Case("GET /rpc/shops?first=2", json=collection(BREAD), headers=GEO),
        Case(
            "POST /shop",
            201,
            collection({**BREAD, "properties": {"id": 3, "label": "fish", "owner_id": None}}),
            body='{"id": 3, "label": "fish", "at": {"type": "Point", "coordinates": [24, 57],'
            ' "crs": {"type": "name", "properties": {"name": "EPSG:4326"}}}}',
            headers={**GEO, "prefer": "return=representation, tx=rollback"},
        ),
        Case("GET /shop?select=id,at&id=eq.1&at=not.is.null", headers=GEO),
        Case("HEAD /shop?id=eq.1", headers=GEO, has={"content-type": "application/geo+json; charset=utf-8"}),
    ],
    ids=str,
)
def test_features(service: Service, case: Case) -> None:
    case.check(service.client)
