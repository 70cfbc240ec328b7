"""Transaction-local settings of a request: search path, role, claims and request.

Source: PostgREST's documentation, Transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.text.naming import quote_identifier
from rowcall.service.database.preamble import Values
from rowcall.service.postgrest.request import ApiRequest

RoleSettings = Mapping[str, Sequence[tuple[str, str]]]
"""Settings of `ALTER ROLE … SET` by role."""
ISOLATION = "default_transaction_isolation"
Hoisted = tuple[tuple[str, str], ...]
"""Names and values of a function's settings that apply to its transaction."""


class RequestSettings:
    """Makes the settings of requests for one schema snapshot, as a flat list: name, value, name, value, …

    timeout: `statement_timeout` of the login role.
    """

    def __init__(self, options: PostgRestOptions, roles: RoleSettings, timeout: str) -> None:
        self._roles = {
            role: [part.encode() for name, value in settings if name != ISOLATION for part in (name, value)]
            for role, settings in roles.items()
        }
        self.isolation = {
            role: value for role, settings in roles.items() for name, value in settings if name == ISOLATION
        }
        """Role → isolation level that its settings choose, as they write it."""
        self._paths = {
            schema: ", ".join(map(quote_identifier, dict.fromkeys((schema, *options.extra_search_path)))).encode()
            for schema in options.schemas
        }
        self._timeout = timeout.encode()
        self._application = [part.encode() for name, value in options.app_settings for part in (name, value)]
        self._of_kind = lru_cache(maxsize=512)(self._new_of_kind)

    def values(self, request: ApiRequest, read_only: bool, hoisted: Hoisted = ()) -> Values:
        """Return the settings of a request. read_only: access mode of the transaction. hoisted: of the called
        function.
        """
        headers, cookies = headers_and_cookies(request.scope)
        return [
            *self.values_without_headers(request, read_only, hoisted),
            b"request.headers",
            headers,
            b"request.cookies",
            cookies,
        ]

    def values_without_headers(self, request: ApiRequest, read_only: bool, hoisted: Hoisted) -> Values:
        """Return the settings without headers and cookies. Parameters as for `values`."""
        user = request.user
        timezone = request.negotiation.preferences.timezone
        return [
            *self._of_kind(request.schema, user.role, read_only, hoisted, request.method),
            *(() if timezone is None else (b"timezone", timezone.encode())),
            b"request.jwt.claims",
            user.settings,
            b"request.path",
            request.path.encode(),
        ]

    def _new_of_kind(self, schema: str, role: str, read_only: bool, hoisted: Hoisted, method: str) -> Values:
        """Return the settings that all requests with the same schema, role, access mode, called function and method
        share. hoisted: of the called function.
        """
        # Sessions of this service have a time limit of their own, which requests of this interface do not.
        result: Values = [b"search_path", self._paths[schema], b"statement_timeout", self._timeout]
        if read_only:
            result += (b"transaction_read_only", b"on")
        result += self._roles.get(role, ())
        for name, value in hoisted:
            if name != ISOLATION:
                result += (name.encode(), value.encode())
        # Behind the others, which the role may not be allowed to set.
        result += (b"role", role.encode(), b"request.method", method.encode())
        result += self._application
        return result


def headers_and_cookies(scope: Any) -> tuple[bytes, bytes]:
    """Return the headers without Cookie, and the cookies, as JSON objects. Of repeated headers the last one counts.

    Values are UTF-8, with U+FFFD for other bytes. granian passes only values in ASCII.
    """
    as_json = getattr(scope.headers, "as_json", None)
    text = None if as_json is None else as_json()
    if text is not None:
        return text, b"{}"
    decoded = getattr(scope.headers, "decoded_items", None)
    items: list[tuple[str, str]] = scope.headers.items() if decoded is None else decoded()
    headers = {name.lower(): value for name, value in items}
    if headers.pop("cookie", None) is None:
        return orjson.dumps(headers), b"{}"
    return orjson.dumps(headers), orjson.dumps(_cookies(value for name, value in items if name.lower() == "cookie"))


def _cookies(headers: Iterable[str]) -> dict[str, str]:
    """Return values by name of cookies, of which the last one counts. headers: values of `Cookie`. A cookie without `=`
    has an empty value; of the blanks around a cookie only those before its name are left out, as in PostgREST.
    """
    result: dict[str, str] = {}
    for header in filter(None, headers):
        for pair in header.removesuffix(";").split(";"):
            name, _, value = pair.partition("=")
            result[name.lstrip(" ")] = value
    return result
