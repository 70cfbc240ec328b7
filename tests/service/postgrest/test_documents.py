"""Documents of large schemas: other work goes on while they are built, and they are built once."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from rowcall.core.postgrest.options import options_of
from rowcall.core.postgrest.schema import Column, Relation, Schema
from rowcall.service.postgrest.planning.documents import Documents

TABLES = 3000
NAMES = [f"t{number}" for number in range(TABLES)]
COLUMNS = tuple(Column(f"c{number}", "integer", "integer") for number in range(10))
SCHEMA = Schema({("api", name): Relation("api", name, COLUMNS) for name in NAMES}, {})
OPTIONS = options_of({"db-schemas": "api"})


def privileges(count: int = TABLES) -> bytes:
    return orjson.dumps([NAMES[:count], None, None])


@pytest.mark.slow
def test_the_event_loop_is_not_blocked_while_a_document_is_built() -> None:
    async def build() -> tuple[bytes, int]:
        task = asyncio.ensure_future(Documents(SCHEMA, OPTIONS).document("api", "host", privileges()))
        turns = 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        return await task, turns

    document, turns = asyncio.run(build())
    content = orjson.loads(document)
    assert [len(content[name]) for name in ("paths", "definitions")] == [TABLES + 1, TABLES]
    assert content["definitions"]["t7"]["properties"].keys() == {column.name for column in COLUMNS}
    assert turns > 5


@pytest.mark.slow
def test_equal_requests_share_a_document() -> None:
    async def ask() -> None:
        documents = Documents(SCHEMA, OPTIONS)
        first, second = await asyncio.gather(
            documents.document("api", "host", privileges()), documents.document("api", "host", privileges())
        )
        assert first is second
        assert await documents.document("api", "host", privileges()) is first
        others = (documents.document("api", "other", privileges()), documents.document("api", "host", privileges(1)))
        for other in others:
            assert await other != first

    asyncio.run(ask())


@pytest.mark.slow
def test_a_client_that_disconnects_does_not_end_the_building_for_others() -> None:
    async def ask() -> bytes:
        documents = Documents(SCHEMA, OPTIONS)
        first = asyncio.ensure_future(documents.document("api", "host", privileges()))
        second = asyncio.ensure_future(documents.document("api", "host", privileges()))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert orjson.loads(asyncio.run(ask()))["swagger"] == "2.0"


@pytest.mark.slow
def test_the_size_of_cached_documents_is_limited() -> None:
    async def ask() -> None:
        whole = await Documents(SCHEMA, OPTIONS).document("api", "host", privileges(2))
        documents = Documents(SCHEMA, OPTIONS, 2 * len(whole))
        cached = [await documents.document("api", host, privileges(2)) for host in ("aaaa", "bbbb", "cccc")]
        assert await documents.document("api", "cccc", privileges(2)) is cached[2]
        assert await documents.document("api", "aaaa", privileges(2)) is not cached[0]
        large = await documents.document("api", "host", privileges())
        assert await documents.document("api", "host", privileges()) is not large

    asyncio.run(ask())
