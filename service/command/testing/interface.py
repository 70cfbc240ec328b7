"""PostgREST's interface for tests: on the connection of the test, for the callers that it states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.service.postgrest.authentication import Authenticated, Authentication
from rowcall.service.postgrest.interface import PostgRestInterface
from rowcall.service.testing.database import TestDatabase


class StatedCallers(Authentication):
    """Authenticates requests by the claims that a test states; without claims, by a token. One request at a time."""

    stated: Iterable[tuple[str, str]] = ()
    """Names and values of the claims for the next request."""

    def authenticate(self, authorization: str | None) -> Authenticated:
        claims = claims_of(self.stated)
        return self.caller_of(claims) if claims else super().authenticate(authorization)


class TestInterface:
    """PostgREST's interface of one schema snapshot, for tests. body_limit: largest request body in bytes. `steps`: as
    `PostgRestInterface.steps`.
    """

    __test__ = False

    def __init__(self, catalogue: PostgRestCatalogue, database: TestDatabase, body_limit: int) -> None:
        self.callers = StatedCallers(catalogue.options)
        self._interface = PostgRestInterface(
            catalogue, database.plain_runs(), body_limit, {}, None, authentication=self.callers
        )
        self.steps = self._interface.steps


def claims_of(stated: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the claims that a test states, in the form of the claims of a token. The values of a claim that is stated
    several times become an array. A value that is a JSON object or array is parsed; any other stays a text."""
    result: dict[str, Any] = {}
    repeated: set[str] = set()
    for name, text in stated:
        value = _value(text)
        if name not in result:
            result[name] = value
        elif name in repeated:
            result[name].append(value)
        else:
            repeated.add(name)
            result[name] = [result[name], value]
    return result


def _value(text: str) -> Any:
    """Parse the text if it is a JSON object or array; otherwise return it unchanged."""
    if text.startswith(("{", "[")):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    return text
