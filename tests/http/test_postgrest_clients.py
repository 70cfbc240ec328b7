"""The JavaScript clients of PostgREST and Supabase run the documented calls against the interface."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.node import linked, run
from tests.harness.postgrest import PLAIN, create_roles, token
from tests.http.conftest import Serve

pytestmark = pytest.mark.slow

SQL = """
create schema api;
create table api.countries (id int primary key, name text, code text);
create table api.cities (id int primary key, name text, country_id int references api.countries, tags text[], info jsonb);
insert into api.countries values (1, 'Norway', 'NO'), (2, 'Latvia', 'LV'), (3, 'Chad', null);
insert into api.cities values (1, 'Oslo', 1, '{north}', '{"size": 7}'), (2, 'Riga', 2, '{east,old}', '{"size": 6}');
create table api.stays (id int primary key, span int4range); insert into api.stays values (1, '[5,9)');
create function api.total(numbers int[]) returns int stable language sql as 'select sum(n)::int from unnest(numbers) n';
create function api.add(a int, b int) returns int stable language sql as 'select a + b';
create function api.keys(value json) returns setof text stable language sql as 'select json_object_keys(value)';
create function api.all_countries() returns setof api.countries stable language sql as 'select * from api.countries';
"""  # noqa: E501 (each line is one object)

CLIENTS = {
    "postgrest-js": """
import { PostgrestClient } from '@supabase/postgrest-js'
const api = new PostgrestClient(process.argv[2] + '/rest/v1')
""",
    "supabase-js": """
import { createClient } from '@supabase/supabase-js'
// Node.js has no WebSocket before version 22; nothing here opens one.
const realtime = { transport: class {} }
const api = createClient(process.argv[2], process.argv[3], { db: { schema: 'api' }, realtime })
""",
}
CALLS = """
const results = {}
async function run(name, call) {
  const { data, error, count, status } = await call
  results[name] = [status, data, count, error === null ? null : error.code]
}
await run('select', api.from('countries').select('id, name').order('id'))
await run('embed', api.from('countries').select(`name, cities ( name )`).eq('id', 1))
await run('inner', api.from('cities').select('name, countries!inner(name)').eq('countries.name', 'Latvia'))
await run('count', api.from('countries').select('*', { count: 'exact', head: true }))
await run('in', api.from('countries').select('id').in('name', ['Norway', 'a,b']))
await run('is', api.from('countries').select('id').is('code', null))
await run('not', api.from('countries').select('id').not('code', 'is', null).order('id'))
await run('or', api.from('countries').select('id').or('id.eq.2,name.eq.Chad').order('id'))
await run('contains', api.from('cities').select('id').contains('tags', ['old']))
await run('containsJson', api.from('cities').select('id').contains('info', { size: 7 }))
await run('overlaps', api.from('cities').select('id').overlaps('tags', ['north', 'x']))
await run('ilike', api.from('countries').select('id').ilike('name', '%way'))
await run('likeAny', api.from('countries').select('id').likeAnyOf('name', ['N%', 'L%']).order('id'))
await run('textSearch', api.from('countries').select('id').textSearch('name', 'norway'))
await run('match', api.from('countries').select('id').match({ id: 2, code: 'LV' }))
await run('range', api.from('countries').select('id').order('id').range(1, 2))
await run('limit', api.from('countries').select('id').order('id', { ascending: false }).limit(1))
await run('single', api.from('countries').select('name').eq('id', 1).single())
await run('singleNone', api.from('countries').select('name').eq('id', 9).single())
await run('maybeSingle', api.from('countries').select('name').eq('id', 9).maybeSingle())
await run('csv', api.from('countries').select('id,name').eq('id', 1).csv())
await run('insert', api.from('countries').insert({ id: 4, name: 'Mali' }))
await run('insertMany', api.from('countries').insert([{ id: 5, name: 'Peru' }, { id: 6, code: 'IT' }]).select('id, name'))
await run('insertDefault', api.from('cities').insert([{ id: 7 }], { defaultToNull: false }).select())
await run('upsert', api.from('countries').upsert({ id: 4, name: 'Mali!' }).select('name'))
await run('ignore', api.from('countries').upsert({ id: 4, name: 'no' }, { onConflict: 'id', ignoreDuplicates: true }).select())
await run('update', api.from('countries').update({ code: 'ML' }).eq('id', 4).select('code').single())
await run('delete', api.from('countries').delete().gt('id', 3))
await run('rpc', api.rpc('add', { a: 1, b: 2 }))
await run('rpcGet', api.rpc('add', { a: 1, b: 2 }, { get: true }))
await run('rpcRows', api.rpc('all_countries').select('name').order('name').limit(1))
await run('neq', api.from('countries').select('id').neq('id', 1).lt('id', 3).lte('id', 3).gte('id', 1).gt('id', 0))
await run('like', api.from('countries').select('id').like('name', 'N%'))
await run('likeAll', api.from('countries').select('id').likeAllOf('name', ['N%', '%y']))
await run('ilikeAny', api.from('countries').select('id').ilikeAnyOf('name', ['n%']))
await run('containedBy', api.from('cities').select('id').containedBy('tags', ['east', 'old', 'x']))
await run('rangeGt', api.from('stays').select('id').rangeGt('span', '[1,3)'))
await run('rangeGte', api.from('stays').select('id').rangeGte('span', '[5,6)'))
await run('rangeLt', api.from('stays').select('id').rangeLt('span', '[10,12)'))
await run('rangeLte', api.from('stays').select('id').rangeLte('span', '[1,9)'))
await run('rangeAdjacent', api.from('stays').select('id').rangeAdjacent('span', '[9,12)'))
await run('rangeContains', api.from('stays').select('id').contains('span', '[6,7)'))
await run('rangeOverlaps', api.from('stays').select('id').overlaps('span', '[8,20)'))
for (const type of [undefined, 'plain', 'phrase', 'websearch'])
  await run('textSearch ' + type, api.from('countries').select('id').textSearch('name', 'chad', { type, config: 'english' }))
await run('filter', api.from('countries').select('id').filter('name', 'in', '("Chad","Mali")'))
await run('orderNulls', api.from('countries').select('id').order('code', { ascending: false, nullsFirst: true }).order('id'))
await run('embedOrder', api.from('countries').select('cities(name)').eq('id', 1)
  .order('name', { referencedTable: 'cities' }).limit(1, { referencedTable: 'cities' }))
await run('embedOr', api.from('countries').select('cities(id)').eq('id', 1).or('id.eq.1,name.eq.x', { referencedTable: 'cities' }))
await run('rollback', api.from('countries').insert({ id: 8 }).rollback())
await run('afterRollback', api.from('countries').select('id').eq('id', 8))
await run('maybeWrite', api.from('countries').update({ code: 'x' }).eq('id', 9).select().maybeSingle())
await run('rpcHead', api.rpc('all_countries', {}, { head: true, count: 'exact' }))
await run('rpcArray', api.rpc('total', { numbers: [1, 2, 3] }, { get: true }))
for (const count of ['exact', 'estimated', 'planned'])
  await run('writeCount ' + count, api.from('countries').update({ code: 'LV' }, { count }).eq('id', 2))
await run('maxAffected', api.from('countries').update({ code: 'LV' }).eq('id', 2).maxAffected(1).select('id'))
await run('maxAffectedMore', api.from('countries').update({ code: 'x' }).gt('id', 0).maxAffected(1))
await run('maxAffectedRpc', api.rpc('add', { a: 1, b: 2 }).maxAffected(1))
await run('insertCsv', api.from('countries').insert({ id: 8 }).rollback().select('id, name').csv())
await run('insertTwoSingle', api.from('countries').insert([{ id: 8 }, { id: 9 }]).select().single())
await run('insertEmpty', api.from('countries').insert([]).select())
await run('updateEmpty', api.from('countries').update({}).eq('id', 1).select())
await run('conflict', api.from('countries').insert({ id: 1 }))
await run('stripNulls', api.from('countries').select().eq('id', 3).stripNulls())
await run('stripNullsSingle', api.from('countries').select().eq('id', 3).single().stripNulls())
await run('maybeSeveral', api.from('countries').select('id').maybeSingle())
await run('rangeBeyond', api.from('countries').select('id', { count: 'exact' }).range(9, 10))
await run('embedRange', api.from('countries').select('cities(id)').eq('id', 1).range(1, 2, { referencedTable: 'cities' }))
await run('orderEmbedded', api.from('cities').select('id').order('countries(name)', { ascending: false }))
await run('regex', api.from('countries').select('id').regexMatch('name', '^N.*y$'))
await run('regexCase', api.from('countries').select('id').regexIMatch('name', '^n.*Y$'))
await run('isDistinct', api.from('countries').select('id').isDistinct('code', 'NO').order('id'))
await run('notIn', api.from('countries').select('id').notIn('name', ['Norway', 'a,b']).order('id'))
await run('orNested', api.from('countries').select('id').or('and(id.gt.1,code.eq.LV),name.in.("Chad","a,b")').order('id'))
await run('rpcObjectHead', api.rpc('keys', { value: { a: 1 } }, { head: true, count: 'exact' }))
await run('rpcGetCount', api.rpc('all_countries', {}, { get: true, count: 'exact' }).select('id').order('id').range(0, 1))
await run('rpcMissing', api.rpc('add', { a: 1 }))
await run('headMissing', api.from('nothing').select('*', { head: true }))
await run('headFault', api.from('countries').select('nope', { head: true }))
const all = { analyze: true, verbose: true, settings: true, buffers: true, wal: true }
await run('explainAll', api.from('countries').select().explain({ ...all, format: 'json' }))
await run('explainWrite', api.from('countries').update({ code: 'x' }).eq('id', 9).select().explain(all))
await run('schema', api.schema('api').from('countries').select('id').eq('id', 1))
await run('badSchema', api.schema('nope').from('countries').select('id'))
await run('explain', api.from('countries').select().explain())
await run('unknown', api.from('nothing').select())
await api.from('cities').delete().eq('id', 7)
console.log(JSON.stringify(results))
"""  # noqa: E501 (each line is one call)

EXPECTED = {
    "select": [200, [{"id": 1, "name": "Norway"}, {"id": 2, "name": "Latvia"}, {"id": 3, "name": "Chad"}], None, None],
    "embed": [200, [{"name": "Norway", "cities": [{"name": "Oslo"}]}], None, None],
    "inner": [200, [{"name": "Riga", "countries": {"name": "Latvia"}}], None, None],
    "count": [200, None, 3, None],
    "in": [200, [{"id": 1}], None, None],
    "is": [200, [{"id": 3}], None, None],
    "not": [200, [{"id": 1}, {"id": 2}], None, None],
    "or": [200, [{"id": 2}, {"id": 3}], None, None],
    "contains": [200, [{"id": 2}], None, None],
    "containsJson": [200, [{"id": 1}], None, None],
    "overlaps": [200, [{"id": 1}], None, None],
    "ilike": [200, [{"id": 1}], None, None],
    "likeAny": [200, [{"id": 1}, {"id": 2}], None, None],
    "textSearch": [200, [{"id": 1}], None, None],
    "match": [200, [{"id": 2}], None, None],
    "range": [200, [{"id": 2}, {"id": 3}], None, None],
    "limit": [200, [{"id": 3}], None, None],
    "single": [200, {"name": "Norway"}, None, None],
    "singleNone": [406, None, None, "PGRST116"],
    "maybeSingle": [200, None, None, None],
    "csv": [200, "id,name\n1,Norway", None, None],
    "insert": [201, None, None, None],
    "insertMany": [201, [{"id": 5, "name": "Peru"}, {"id": 6, "name": None}], None, None],
    "insertDefault": [201, [{"id": 7, "name": None, "country_id": None, "tags": None, "info": None}], None, None],
    "upsert": [200, [{"name": "Mali!"}], None, None],
    "ignore": [201, [], None, None],
    "update": [200, {"code": "ML"}, None, None],
    "delete": [204, None, None, None],
    "rpc": [200, 3, None, None],
    "rpcGet": [200, 3, None, None],
    "rpcRows": [200, [{"name": "Chad"}], None, None],
    "neq": [200, [{"id": 2}], None, None],
    "like": [200, [{"id": 1}], None, None],
    "likeAll": [200, [{"id": 1}], None, None],
    "ilikeAny": [200, [{"id": 1}], None, None],
    "containedBy": [200, [{"id": 2}], None, None],
    **{
        name: [200, [{"id": 1}], None, None]
        for name in (
            *("rangeGt", "rangeGte", "rangeLt", "rangeLte", "rangeAdjacent", "rangeContains", "rangeOverlaps"),
            "schema",
        )
    },
    "embedOr": [200, [{"cities": [{"id": 1}]}], None, None],
    **{f"textSearch {kind}": [200, [{"id": 3}], None, None] for kind in ("undefined", "plain", "phrase", "websearch")},
    "filter": [200, [{"id": 3}], None, None],
    "orderNulls": [200, [{"id": 3}, {"id": 1}, {"id": 2}], None, None],
    "embedOrder": [200, [{"cities": [{"name": "Oslo"}]}], None, None],
    "rollback": [201, None, None, None],
    "afterRollback": [200, [], None, None],
    "maybeWrite": [200, None, None, None],
    "rpcHead": [200, None, 3, None],
    "rpcArray": [200, 6, None, None],
    "writeCount exact": [204, None, 1, None],
    "writeCount estimated": [204, None, 1, None],
    "writeCount planned": [204, None, None, None],
    "maxAffected": [200, [{"id": 2}], None, None],
    "maxAffectedMore": [400, None, None, "PGRST124"],
    "maxAffectedRpc": [400, None, None, "PGRST128"],
    "insertCsv": [201, "id,name\n8,", None, None],
    "insertTwoSingle": [406, None, None, "PGRST116"],
    "insertEmpty": [201, [], None, None],
    "updateEmpty": [200, [], None, None],
    "conflict": [409, None, None, "23505"],
    "stripNulls": [200, [{"id": 3, "name": "Chad"}], None, None],
    "stripNullsSingle": [200, {"id": 3, "name": "Chad"}, None, None],
    "maybeSeveral": [406, None, None, "PGRST116"],
    "rangeBeyond": [416, None, None, "PGRST103"],
    "embedRange": [200, [{"cities": []}], None, None],
    "orderEmbedded": [400, None, None, "PGRST108"],
    "regex": [200, [{"id": 1}], None, None],
    "regexCase": [200, [{"id": 1}], None, None],
    "isDistinct": [200, [{"id": 2}, {"id": 3}], None, None],
    "notIn": [200, [{"id": 2}, {"id": 3}], None, None],
    "orNested": [200, [{"id": 2}, {"id": 3}], None, None],
    "rpcObjectHead": [200, ["a"], 1, None],
    "rpcGetCount": [206, [{"id": 1}, {"id": 2}], 3, None],
    "rpcMissing": [404, None, None, "PGRST202"],
    # The clients take a 404 without a body for an empty success, and have no code of other responses without one.
    "headMissing": [204, None, None, None],
    "headFault": [400, None, None, None],
    "badSchema": [406, None, None, "PGRST106"],
    "unknown": [404, None, None, "PGRST205"],
}


@pytest.fixture(scope="module")
def anonymous(database: Database) -> str:
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {anonymous}; grant all on all tables in schema api to {anonymous}")
    return anonymous


@pytest.mark.parametrize("client", CLIENTS)
def test_documented_calls(serve: Serve, database: Database, anonymous: str, tmp_path: Path, client: str) -> None:
    settings = {
        **PLAIN,
        "PostgRest:AnonymousRole": anonymous,
        "PostgRest:PlanEnabled": "true",
        "PostgRest:TransactionEnd": "commit-allow-override",
        "PostgRest:Path": "/rest/v1",
    }
    service = serve(database, settings=settings)
    linked(tmp_path)
    script = tmp_path / "calls.mjs"
    script.write_text(CLIENTS[client] + CALLS)
    key = token(role=anonymous)["authorization"].removeprefix("Bearer ")
    results = json.loads(run(script, service.url, key))
    assert results.pop("explain")[0] == 200
    _, plans, *_ = results.pop("explainAll")
    assert plans[0]["Plan"]["Actual Loops"] == 1
    assert "Update on api.countries" in results.pop("explainWrite")[1]
    assert results == EXPECTED
