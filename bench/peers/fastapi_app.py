"""The endpoints of the benchmark in FastAPI with asyncpg and orjson, as an experienced user would write them.

asyncpg prepares and caches statements. The response uses orjson directly: validation by a response model would be
slower and is not needed for rows of the application's own query. asyncpg reads PGHOST and similar variables.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import orjson
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel


async def json_codecs(connection: Any) -> None:
    for name in ("json", "jsonb"):
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=lambda value: orjson.dumps(value).decode(), decoder=orjson.loads
        )


@asynccontextmanager
async def lifespan(application: FastAPI) -> AsyncIterator[None]:
    size = int(os.environ["BENCH_POOL"])
    async with asyncpg.create_pool(min_size=size, max_size=size, init=json_codecs) as pool:
        application.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


def plain(value: Any) -> Any:
    """Convert the types that orjson does not support: numeric, asyncpg's uuid class, and composites, which are
    records."""
    match value:
        case Decimal():
            return float(value)
        case UUID():
            return str(value)
    return dict(value)


async def respond(request: Request, sql: str, *arguments: Any) -> Response:
    rows = await request.app.state.pool.fetch(sql, *arguments)
    return Response(orjson.dumps([dict(row) for row in rows], default=plain), media_type="application/json")


@app.get("/bench/minimal")
async def minimal(request: Request) -> Response:
    return await respond(request, "select * from bench.minimal()")


@app.get("/bench/types")
async def types(request: Request, rows: int) -> Response:
    return await respond(request, "select * from bench.types($1)", rows)


@app.get("/bench/nested")
async def nested(request: Request, rows: int) -> Response:
    return await respond(request, "select * from bench.nested($1)", rows)


@app.get("/bench/shelves")
async def shelves(request: Request, rows: int) -> Response:
    return await respond(request, "select * from bench.shelves($1)", rows)


@app.get("/bench/flat")
async def flat(request: Request, rows: int) -> Response:
    return await respond(request, "select id, (shelf).title, (shelf).code, (shelf).items from bench.flat($1)", rows)


@app.get("/bench/levels")
async def levels(request: Request, rows: int) -> Response:
    return await respond(request, "select * from bench.levels($1)", rows)


@app.get("/bench/large")
async def large(request: Request, kilobytes: int) -> Response:
    return await respond(request, "select * from bench.large($1)", kilobytes)


@app.get("/bench/params")
async def params(
    request: Request,
    id: int,
    small: int,
    big: int,
    price: Decimal,
    ratio: float,
    score: float,
    label: str,
    code: str,
    flag: bool,
    day: date,
    clock: time,
    stamp: datetime,
    moment: datetime,
    key: UUID,
    docb: str,
    first: str,
    second: str,
    third: int,
    fourth: int,
    fifth: bool,
) -> Response:
    return await respond(
        request,
        "select * from bench.params($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20)",
        *(id, small, big, price, ratio, score, label, code, flag, day),
        *(clock, stamp, moment, key, orjson.loads(docb), first, second, third, fourth, fifth),
    )


@app.get("/bench/one")
async def one(request: Request, id: int) -> Response:
    return await respond(request, "select * from bench.one($1)", id)


@app.get("/bench/one_stable")
async def one_stable(request: Request, id: int) -> Response:
    return await respond(request, "select * from bench.one_stable($1)", id)


@app.get("/bench/statement")
async def statement(request: Request, id: int) -> Response:
    return await respond(request, "select * from bench.statement($1)", id)


@app.get("/bench/search")
async def search(request: Request, first: int, least: int | None = None) -> Response:
    return await respond(request, "select * from bench.search($1, $2)", first, least)


@app.get("/api/bench/account")
async def account(request: Request, id: int) -> Response:
    return await respond(request, "select * from bench.account where id = $1", id)


@app.get("/bench/file")
async def file(request: Request, id: int) -> Response:
    return await respond(request, "select id, name, balance, opened from bench.account where id = $1", id)


class Payment(BaseModel):
    source: int
    target: int
    amount: int


@app.post("/bench/pay")
async def pay(request: Request, payment: Payment) -> Response:
    values = (payment.source, payment.target, payment.amount)
    return await respond(request, "select * from bench.pay($1, $2, $3)", *values)


class Line(BaseModel):
    account: int
    amount: int
    note: str


@app.put("/api/bench/line/returning")
async def insert(request: Request, line: Line) -> Response:
    sql = "insert into bench.line (account, amount, note) values ($1, $2, $3) returning *"
    return await respond(request, sql, line.account, line.amount, line.note)


class Order(BaseModel):
    rows: int
    label: str
    price: Decimal
    day: date
    flag: bool
    tags: list[str]


@app.post("/bench/post")
async def post(request: Request, order: Order) -> Response:
    return await respond(
        request,
        "select * from bench.post($1, $2, $3, $4, $5, $6)",
        *(order.rows, order.label, order.price, order.day, order.flag, order.tags),
    )


# --- URLs of PostgREST, each with its own SQL -------------------------------------------------------------------------

PURCHASES_OF_CUSTOMER = """
select c.id, c.name, coalesce((
    select json_agg(p order by p.id) from (
        select p.id, p.placed, coalesce((
            select json_agg(i order by i.id) from (
                select i.id, i.product, i.price from bench_rest.item i where i.purchase_id = p.id) i), '[]') as item
        from bench_rest.purchase p where p.customer_id = c.id) p), '[]') as purchase
from bench_rest.customer c where c.id = $1"""


@app.get("/rest/mark")
async def mark(request: Request, id: str) -> Response:
    return await respond(request, "select * from bench_rest.mark where id = $1", int(id.removeprefix("eq.")))


@app.get("/rest/purchase")
async def purchase(request: Request, customer_id: str, limit: int) -> Response:
    sql = (
        "select id, customer_id, placed, note from bench_rest.purchase where customer_id >= $1 "
        "order by customer_id, id limit $2"
    )
    return await respond(request, sql, int(customer_id.removeprefix("gte.")), limit)


@app.get("/rest/customer")
async def customer(request: Request, id: str) -> Response:
    return await respond(request, PURCHASES_OF_CUSTOMER, int(id.removeprefix("eq.")))


class Customer(BaseModel):
    id: int


@app.post("/rest/rpc/balance_of")
async def balance_of(request: Request, arguments: Customer) -> Response:
    return await respond(request, "select * from bench_rest.balance_of($1)", arguments.id)


class Mark(BaseModel):
    account: int
    amount: int
    note: str | None


@app.post("/rest/mark")
async def insert_marks(request: Request, marks: list[Mark]) -> Response:
    sql = (
        "insert into bench_rest.mark (account, amount, note) select * from unnest($1::int[], $2::bigint[], $3::text[])"
    )
    columns = ([item.account for item in marks], [item.amount for item in marks], [item.note for item in marks])
    await request.app.state.pool.execute(sql, *columns)
    return Response(status_code=201)


# --- responses that are cached with aiocache --------------------------------------------------------------------------

if os.environ.get("BENCH_REDIS"):
    from aiocache import Cache, cached  # type: ignore[import-untyped]
    from aiocache.serializers import NullSerializer  # type: ignore[import-untyped]

    HOST, _, PORT = os.environ["BENCH_REDIS"].partition(":")
    IN_REDIS = {"cache": Cache.REDIS, "endpoint": HOST, "port": int(PORT), "serializer": NullSerializer(encoding=None)}

    async def fetched(sql: str, value: int) -> bytes:
        return orjson.dumps([dict(row) for row in await app.state.pool.fetch(sql, value)], default=plain)

    async def few_columns(rows: int) -> bytes:
        return await fetched("select id, price, label, day, key from bench.types($1)", rows)

    async def with_key(key: int) -> bytes:
        return await fetched("select * from bench.uncached($1)", key)

    def only_value(_function: Any, value: int) -> str:
        return f"value:{value}"

    in_memory = cached(ttl=3600, key_builder=only_value)(few_columns)
    in_redis = cached(ttl=3600, key_builder=only_value, **IN_REDIS)(few_columns)
    expires_at_once = cached(ttl=0.001, key_builder=only_value)(with_key)

    @app.get("/bench/cached_memory")
    async def cached_memory(rows: int) -> Response:
        return Response(await in_memory(rows), media_type="application/json")

    @app.get("/bench/cached_redis")
    async def cached_redis(rows: int) -> Response:
        return Response(await in_redis(rows), media_type="application/json")

    @app.get("/bench/cached_miss")
    async def cached_miss(id: int) -> Response:
        return Response(await expires_at_once(id), media_type="application/json")

    @app.get("/bench/uncached")
    async def uncached(id: int) -> Response:
        return Response(await with_key(id), media_type="application/json")
