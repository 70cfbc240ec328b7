"""Random query strings, made by the grammar and beside it, never give an internal error of PostgREST's interface."""

from __future__ import annotations

from random import Random

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.effort import examples, seed
from tests.harness.postgrest import PLAIN, create_roles
from tests.http.conftest import Serve
from tests.http.test_postgrest_reading import SQL

RELATIONS = ("vessel", "harbour", "voyage", "sailor", "crew", "licence", "large", "larger", "flag", "titles", "parted")
NAMES = (
    *("id", "label", "tonnage", "specs", "title", "home_id", "from_id", "fare", "nick", "duty", "code", "tags", "pos"),
    *('"a,b"', "specs->a", "specs->>beam", "specs->0->b", "*", "count", "vessel", "age", "shade", "words", "x y", "é"),
)
VALUES = (
    *("1", "a", "null", "{1,2}", "(1,2)", '("a,b",c)', "S*", "1990-01-01", "%25", "true", '"x"', "[1,2)", "", "é"),
    *("(any)", "{a}", "not.null", "%FF", "%00", "'", "--", "((", "\\", "9" * 40),
)
OPERATORS = (
    *("eq", "neq", "gt", "like", "ilike", "in", "is", "fts", "cs", "ov", "isdistinct", "match", "sl", "adj"),
    *("eq(any)", "like(all)", "fts(english)", "not.eq", "not.in", "not.is", "nope", "wfts", "EQ", ""),
)
EMBEDS = (
    *("harbour", "vessel", "voyage", "sailor", "crew", "licence", "boss_id", "home_id", "harbour!voyage_from", "home"),
    *("harbour!to_id", "sailor!boss_id", "voyage!inner", "crew!left", "vessel!inner!home_id", "nope", "large", "trips"),
)
LOGIC = ("or", "and", "not.or", "or", "and", "not.or", "id!.or", "label->x.and", '") x ("!.or', "not!.or")
ORDERS = ("id", "id.desc", "label.asc.nullsfirst", "harbour(title)", "specs->>beam", "id.x", "voyage(id)", "", "tags.0")
ACCEPTED = ("text/csv", "application/vnd.pgrst.object+json", "application/vnd.pgrst.plan+json", "text/html", "*/*;q=x")


class Queries:
    """Makes query strings. Half of the texts are wrong somewhere."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def url(self) -> str:
        random = self._random
        parts = [f"select={self._select(0)}"] if random.random() < 0.8 else []
        parts += (self._parameter() for _ in range(random.randint(0, 3)))
        return f"/{random.choice(RELATIONS)}?{'&'.join(parts)}"

    def headers(self) -> dict[str, str]:
        random = self._random
        headers = (
            {"prefer": f"count={random.choice(('exact', 'planned', 'estimated'))}"} if random.random() < 0.2 else {}
        )
        return headers | ({"accept": random.choice(ACCEPTED)} if random.random() < 0.2 else {})

    def _parameter(self) -> str:
        random = self._random
        prefix = random.choice(("", "", "harbour.", "voyage.", "e.", "voyage.crew."))
        kind = random.random()
        if kind < 0.5:
            return f"{prefix}{random.choice(NAMES)}={random.choice(OPERATORS)}.{random.choice(VALUES)}"
        if kind < 0.7:
            return f"{prefix}{random.choice(LOGIC)}={self._logic(0)}"
        if kind < 0.85:
            return f"{prefix}order={random.choice(ORDERS)}"
        return f"{prefix}{random.choice(('limit', 'offset'))}={random.choice(('1', '0', '-1', 'x', '9' * 30))}"

    def _select(self, depth: int) -> str:
        random = self._random
        return ",".join(self._item(depth) for _ in range(random.randint(1, 3)))

    def _item(self, depth: int) -> str:
        random = self._random
        kind = random.random()
        if kind < 0.5 or depth > 2:
            cast = random.choice(("", "", "", "::text", "::int", "::nope"))
            aggregate = random.choice(("", "", "", "", ".sum()", ".count()", ".nope()"))
            return f"{random.choice(('', '', 'al:'))}{random.choice(NAMES)}{cast}{aggregate}"
        if kind < 0.95:
            return f"{random.choice(('', '', 'e:', '...'))}{random.choice(EMBEDS)}({self._select(depth + 1)})"
        return random.choice(("count()", "...", "(", "*!", ""))

    def _logic(self, depth: int) -> str:
        random = self._random
        members = [
            f"{random.choice(('and', 'or', 'not.and'))}{self._logic(depth + 1)}"
            if depth < 2 and random.random() < 0.3
            else f"{random.choice(NAMES)}.{random.choice(OPERATORS)}.{random.choice(VALUES)}"
            for _ in range(random.randint(0, 3))
        ]
        return f"({','.join(members)})"


@pytest.fixture(scope="module")
def client(serve: Serve, database: Database) -> httpx.Client:
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(
        f"grant usage on schema api, extra to {anonymous}; grant select on all tables in schema api to {anonymous}"
    )
    settings = {
        **PLAIN,
        "PostgRest:AnonymousRole": anonymous,
        "PostgRest:AggregatesEnabled": "true",
        "PostgRest:PlanEnabled": "true",
        "PostgRest:ExtraSearchPath": "extra",
    }
    return serve(database, settings=settings).client


@pytest.mark.slow
def test_random_queries_give_no_internal_error(client: httpx.Client) -> None:
    number = seed("ROWCALL_RANDOM_SEED")
    queries = Queries(Random(number))
    for _ in range(examples(2400)):
        url, headers = queries.url(), queries.headers()
        response = client.get(url, headers=headers)
        assert response.status_code < 500, (number, url, headers, response.text)
        if response.status_code >= 300:
            assert response.json().keys() == {"code", "message", "details", "hint"}, (number, url, headers)
            assert response.json()["code"] not in ("42601", "42P02"), (number, url, headers, response.text)
