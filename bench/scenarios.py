"""Scenarios and targets of the benchmark as data: the requests to every service, and the ratios that rowcall has to
reach.

A scenario is one request, repeated. `sql` is the same call for pgbench, whose variables (`:rows`) are parameters of a
prepared statement. `targets` are the ratios of requests per second, rowcall over the other service.
"""

import base64
import hmac
import json
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One request and the SQL call behind it. A request with a body is a POST, otherwise a GET."""

    name: str
    path: str
    sql: str
    variables: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))
    body: bytes = b""
    targets: MappingProxyType[str, float] = field(default_factory=lambda: MappingProxyType({}))
    headers: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    """Names of pgbench's variables that are random keys; in the request they are `KEY`, in this order."""
    writes: bool = False
    """Whether each request has a different response."""
    verb: str = ""

    @property
    def method(self) -> str:
        return self.verb or ("POST" if self.body else "GET")

    @property
    def single_request(self) -> "Scenario":
        """Return the scenario with one of the keys, for a single request."""
        if not self.keys:
            return self
        names = dict.fromkeys(self.keys, SOME_KEY)
        path, body = self.path.replace(KEY, SOME_KEY), self.body.replace(KEY.encode(), SOME_KEY.encode())
        return replace(self, path=path, body=body, variables=MappingProxyType({**self.variables, **names}), keys=())


KEY = "@@@@@@"
"""As in generator.c."""
SOME_KEY = "123456"
KEYS = (100_000, 199_999)


def keyed(
    name: str,
    path: str,
    sql: str,
    targets: dict[str, float],
    *,
    keys: tuple[str, ...] = ("id",),
    body: str = "",
    writes: bool = False,
    verb: str = "",
) -> Scenario:
    """Return a scenario over tables, with random keys (tables.sql)."""
    return Scenario(
        name, path, sql, targets=MappingProxyType(targets), body=body.encode(), keys=keys, writes=writes, verb=verb
    )


def query(name: str, routine: str, values: dict[str, str], targets: dict[str, float]) -> Scenario:
    """Return a GET scenario: the values are the query string and pgbench's variables, in the order of the routine."""
    placeholders = ", ".join(f":{key}" for key in values)
    path = f"/bench/{routine}?{urlencode(values)}" if values else f"/bench/{routine}"
    return Scenario(
        name,
        path,
        f"select * from bench.{routine}({placeholders})",
        MappingProxyType(values),
        targets=MappingProxyType(targets),
    )


def post(name: str, routine: str, values: dict[str, object], targets: dict[str, float]) -> Scenario:
    """Return a POST scenario with a JSON body; a list becomes a PostgreSQL array literal for pgbench."""
    placeholders = ", ".join(f":{key}" for key in values)
    variables = {
        key: "{" + ",".join(map(str, value)) + "}" if isinstance(value, list) else str(value)
        for key, value in values.items()
    }
    return Scenario(
        name,
        f"/bench/{routine}",
        f"select * from bench.{routine}({placeholders})",
        MappingProxyType(variables),
        json.dumps(values).encode(),
        MappingProxyType(targets),
    )


TWENTY_PARAMETERS = {
    "id": "42",
    "small": "7",
    "big": "9007199254740993",
    "price": "12.5",
    "ratio": "0.125",
    "score": "0.5",
    "label": "a label, with blanks & signs",
    "code": "C-42",
    "flag": "true",
    "day": "2024-02-29",
    "clock": "08:15:30",
    "stamp": "2024-02-29T10:20:30",
    "moment": "2024-02-29T10:20:30Z",
    "key": "8f5b1a64-3c1d-4c0e-9d57-0a5d6f1e2b3c",
    "docb": '{"open": true}',
    "first": "first",
    "second": "zweite Größe",
    "third": "3",
    "fourth": "4",
    "fifth": "false",
}
ORDER: dict[str, object] = {
    "rows": 10,
    "label": "from a body",
    "price": 12.5,
    "day": "2024-02-29",
    "flag": True,
    "tags": ["red", "green"],
}


def composites(name: str, routine: str, rows: int, columns: str = "*") -> Scenario:
    """Return a scenario with composites in arrays in composites; also compared with JSON made by PostgreSQL (issue
    3)."""
    return Scenario(
        name,
        f"/bench/{routine}?rows={rows}",
        f"select {columns} from bench.{routine}(:rows)",
        MappingProxyType({"rows": str(rows)}),
        targets=MappingProxyType({"fastapi": 15, "fastify": 3, "rowcall-json": 1}),
    )


# Only for the measured service.
SECRET = "the benchmark signs its tokens with this"
CLAIMS = {"user_id": "41", "user_name": "kiri", "user_roles": ["boss", "gate"], "exp": 4_102_444_800}


def signed(claims: dict[str, object]) -> str:
    """Return a JWT (HS256)."""
    head, body = (_base64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{head}.{body}.{_base64(hmac.digest(SECRET.encode(), f'{head}.{body}'.encode(), 'sha256'))}"


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def with_token(scenario: Scenario) -> Scenario:
    """Return the scenario with a token of a user."""
    return replace(scenario, headers=(("Authorization", f"Bearer {signed(CLAIMS)}"),))


def types(rows: int, targets: dict[str, float]) -> Scenario:
    return query(f"types-{rows}", "types", {"rows": str(rows)}, targets)


TABLE_TARGETS = {"fastapi": 6, "fastify": 2.5, "pgbench": 0.6}
SCENARIOS = (
    query("minimal", "minimal", {}, {"fastapi": 10, "fastify": 4, "pgbench": 0.65, "constant": 0.7}),
    types(1, {"fastapi": 10, "fastify": 4, "pgbench": 0.45}),
    types(10, {"fastapi": 12, "fastify": 4, "pgbench": 0.6}),
    types(100, {"fastapi": 12, "fastify": 3.5, "pgbench": 0.8}),
    types(500, {"fastify": 3}),
    query("params-20", "params", TWENTY_PARAMETERS, {"fastapi": 10, "fastify": 3}),
    post("post-10", "post", ORDER, {"fastapi": 8, "fastify": 3}),
    query("nested-10", "nested", {"rows": "10"}, {"fastify": 3}),
    composites("composites-nested-100", "shelves", 100),
    composites("composites-flat-100", "flat", 100, "id, (shelf).title, (shelf).code, (shelf).items"),
    composites("composites-levels-1000", "levels", 1000),
    with_token(query("authorized", "authorized", {}, {"rowcall-open": 0.8})),
    with_token(query("claims-10", "claims", {"rows": "10"}, {"rowcall-open": 0.9})),
    query("large-200k", "large", {"kilobytes": "200"}, {"fastify": 3}),
    keyed(
        "one", f"/bench/one?id={KEY}", "select * from bench.one(:id)", {"fastapi": 7, "fastify": 2.8, "pgbench": 0.65}
    ),
    keyed("one-stable", f"/bench/one_stable?id={KEY}", "select * from bench.one_stable(:id)", {}),
    keyed(
        "statement",
        f"/bench/statement?id={KEY}",
        "select * from bench.statement(:id)",
        {"fastapi": 8, "fastify": 3.5, "pgbench": 0.7},
    ),
    keyed(
        "pay",
        "/bench/pay",
        "select * from bench.pay(:source, :target, 5)",
        {"fastapi": 4, "fastify": 2.1, "pgbench": 0.72},
        keys=("source", "target"),
        body=f'{{"source": {KEY}, "target": {KEY}, "amount": 5}}',
        writes=True,
    ),
    keyed("search", f"/bench/search?first={KEY}&least=0", "select * from bench.search(:id, 0)", TABLE_TARGETS),
    keyed("table", f"/api/bench/account?id={KEY}", "select * from bench.account where id = :id", TABLE_TARGETS),
    keyed(
        "insert",
        "/api/bench/line/returning",
        "insert into bench.line (account, amount, note) values (:id, 5, 'a line') returning *",
        TABLE_TARGETS,
        body=f'{{"account": {KEY}, "amount": 5, "note": "a line"}}',
        writes=True,
        verb="PUT",
    ),
    keyed(
        "file",
        f"/bench/file?id={KEY}",
        "select id, name, balance, opened from bench.account where id = :id",
        TABLE_TARGETS,
    ),
)
# Cached responses; selected by name, or all of them as `cache`. A miss is cached for a millisecond, under
# one of many keys; compare it with `cache-uncached`.
CACHE_SCENARIOS = (
    query("cache-memory", "cached_memory", {"rows": "10"}, {"constant": 1.5}),
    query("cache-hybrid", "cached_hybrid", {"rows": "10"}, {"constant": 0.75}),
    query("cache-redis", "cached_redis", {"rows": "10"}, {"constant": 0.4}),
    keyed("cache-miss", f"/bench/cached_miss?id={KEY}", "select * from bench.cached_miss(:id)", {}),
    keyed("cache-uncached", f"/bench/uncached?id={KEY}", "select * from bench.uncached(:id)", {}),
)
# PostgREST's interface; selected by name, or all of them as `rest`. The URLs are PostgREST's for all
# services; the peers have a handler with its own SQL for each.
ROWS = [{"account": number, "amount": 3 * number, "note": f"mark {number}"} for number in range(1000)]
REST_TARGETS = {"fastapi": 3, "fastify": 1.5, "pgbench": 0.5}
PURCHASES_OF_CUSTOMER = """
select c.id, c.name, coalesce((
    select json_agg(p order by p.id) from (
        select p.id, p.placed, coalesce((
            select json_agg(i order by i.id) from (
                select i.id, i.product, i.price from bench_rest.item i where i.purchase_id = p.id) i), '[]') as item
        from bench_rest.purchase p where p.customer_id = c.id) p), '[]') as purchase
from bench_rest.customer c where c.id = :id"""
REST_SCENARIOS = (
    keyed("rest-key", f"/rest/mark?id=eq.{KEY}", "select * from bench_rest.mark where id = :id", REST_TARGETS),
    keyed(
        "rest-page",
        f"/rest/purchase?select=id,customer_id,placed,note&customer_id=gte.{KEY}&order=customer_id,id&limit=25",
        "select id, customer_id, placed, note from bench_rest.purchase where customer_id >= :id "
        "order by customer_id, id limit 25",
        REST_TARGETS,
    ),
    keyed(
        "rest-embed",
        "/rest/customer?select=id,name,purchase(id,placed,item(id,product,price))"
        f"&id=eq.{KEY}&purchase.order=id&purchase.item.order=id",
        " ".join(PURCHASES_OF_CUSTOMER.split()),
        REST_TARGETS,
    ),
    keyed(
        "rest-rpc",
        "/rest/rpc/balance_of",
        "select * from bench_rest.balance_of(:id)",
        REST_TARGETS,
        body=f'{{"id": {KEY}}}',
    ),
    Scenario(
        "rest-insert-1000",
        "/rest/mark",
        "insert into bench_rest.mark (account, amount, note) select account, amount, note "
        "from json_to_recordset(:rows) as row(account int, amount bigint, note text)",
        MappingProxyType({"rows": json.dumps(ROWS, separators=(",", ":"))}),
        json.dumps(ROWS, separators=(",", ":")).encode(),
        MappingProxyType(REST_TARGETS),
        headers=(("Prefer", "return=minimal"),),
        writes=True,
    ),
)
FASTIFY_BY_CONNECTIONS = {"minimal": {1: 1.5, 8: 2.2}, "one": {1: 1.2, 8: 1.8}, "pay": {1: 1.05, 8: 1.4}}
"""Scenario → number of connections → the ratio of requests per second to Fastify's that is the target."""
LATENCY_OVER_PGBENCH = {"minimal": 60, "one": 70, "pay": 90}
"""Scenario → microseconds by which the median latency with one connection may be above that of pgbench."""
REST_NAMES = frozenset(scenario.name for scenario in REST_SCENARIOS)
CACHE_NAMES = frozenset(scenario.name for scenario in CACHE_SCENARIOS)
# Scenarios whose routines the schema bench_json has too, with JSON made by PostgreSQL.
WITH_JSON_SCHEMA = frozenset(scenario.name for scenario in SCENARIOS if "rowcall-json" in scenario.targets)
# Scenarios whose routines the schema bench_open has too, without the measured feature.
WITH_OPEN_SCHEMA = frozenset(scenario.name for scenario in SCENARIOS if "rowcall-open" in scenario.targets)
BY_NAME = MappingProxyType({scenario.name: scenario for scenario in SCENARIOS + CACHE_SCENARIOS + REST_SCENARIOS})

# Limit of PostgreSQL's own CPU time for a request, rowcall over pgbench.
DATABASE_CPU_LIMIT = 1.3
