"""Fixed parts of a Python client: imports, helpers, and the heads of the two client classes."""

from __future__ import annotations

HEAD = '''from __future__ import annotations

import enum
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import IO, Any, Final, Literal, TypedDict
from urllib.parse import quote

import httpx
{imports}
BASE_URL: Final = {base_url!r}

File = tuple[str, bytes | IO[bytes]]
"""Name and content of an upload."""


class Unset(enum.Enum):
    """The value of an argument that is not sent, so that the default of the database applies."""

    UNSET = enum.auto()


UNSET: Final = Unset.UNSET


class ApiError(Exception):
    """The service responded with an error status. `problem` is the body of the response."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.response = response
        try:
            found = response.json()
        except ValueError:
            found = None
        self.problem: dict[str, Any] = found if isinstance(found, dict) else {{}}
        self.title = str(self.problem.get("title") or response.reason_phrase)
        self.detail: str | None = self.problem.get("detail")
        self.hint: str | None = self.problem.get("hint")
        self.errors: list[dict[str, str]] = self.problem.get("errors") or []
        super().__init__(f"{{self.status}} {{self.title}}" + (f": {{self.detail}}" if self.detail else ""))


def _json(value: Any) -> Any:
    """Return a JSON value as text. Texts, None and UNSET are unchanged."""
    return value if isinstance(value, (str, Unset)) or value is None else json.dumps(value)


def _jsons(values: Any) -> Any:
    """Return each JSON value of a list as text. A text, None and UNSET instead of a list are unchanged."""
    return values if isinstance(values, (str, Unset)) or values is None else [_json(value) for value in values]


def _text(value: Any) -> str:
    if value is None or isinstance(value, Unset):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _null_word(value: Any) -> Any:
    """Return a value of a query string with the word `null` for None, also in a list."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_null_word(item) for item in value]
    return "null" if value is None else value


def _segment(value: Any) -> str:
    return quote(_text(value), safe="")


def _query(values: Mapping[str, Any]) -> list[tuple[str, str | int | float | bool | None]]:
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for key, value in values.items():
        if isinstance(value, Unset):
            continue
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        pairs += [(key, _text(item)) for item in (value if listed else [value])]
    return pairs


def _body(values: Mapping[str, Any]) -> bytes:
    return json.dumps({{key: value for key, value in values.items() if not isinstance(value, Unset)}}).encode()


def _require_success(response: httpx.Response) -> httpx.Response:
    if not response.is_success:
        raise ApiError(response)
    return response


class _Event:
    """Joins the lines of an event stream to messages."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def take(self, line: str) -> str | None:
        """Return the message that ends with this line; None: it continues, or there is none."""
        if line.startswith("data:"):
            self._lines.append(line[5:].removeprefix(" "))
        elif not line and self._lines:
            message = "\\n".join(self._lines)
            self._lines.clear()
            return message
        return None


def _headers(given: Mapping[str, str] | None) -> dict[str, str]:
    return {{{headers}**(given or {{}})}}
'''

SYNC = '''class Client:
    """Calls the service. Cookies of a sign-in are stored and sent; `headers` are sent with every request."""

    def __init__(
        self,
        base_url: str = BASE_URL,
        *,
        headers: Mapping[str, str] | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        """http: the client that sends the requests, which is not closed; None: a new one, which `close` closes."""
        self._own = http is None
        self._base = base_url.rstrip("/")
        self._headers = _headers(headers)
        self.http = httpx.Client() if http is None else http

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._own:
            self.http.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        content: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        files: Sequence[File] | None = None,
    ) -> httpx.Response:
        return self.http.request(
            method,
            self._base + path,
            params=_query(query) if query else None,
            content=content,
            headers={**self._headers, **(headers or {})},
            files=None if files is None else [("file", file) for file in files],
        )

    def _stream(self, path: str, id: str) -> Iterator[str]:
        event = _Event()
        headers = {**self._headers, "Accept": "text/event-stream"}
        with self.http.stream("GET", f"{self._base}{path}?{quote(id)}", headers=headers, timeout=None) as response:
            if not response.is_success:
                response.read()
                raise ApiError(response)
            for line in response.iter_lines():
                if (message := event.take(line)) is not None:
                    yield message
'''


def asynchronous(sync: str) -> str:
    """Return the source of the asynchronous class, derived from that of the synchronous one."""
    for old, new in (
        ("class Client:", "class AsyncClient:"),
        ("-> Client:", "-> AsyncClient:"),
        ("httpx.Client", "httpx.AsyncClient"),
        ("def __enter__", "async def __aenter__"),
        ("def __exit__", "async def __aexit__"),
        ("        self.close()\n", "        await self.close()\n"),
        ("    def close(", "    async def close("),
        ("self.http.close()", "await self.http.aclose()"),
        ("    def _send(", "    async def _send("),
        ("return self.http.request(", "return await self.http.request("),
        ("    def _send_once(", "    async def _send_once("),
        ("response = self._send(", "response = await self._send("),
        ("return self._send(", "return await self._send("),
        ("time.sleep(", "await asyncio.sleep("),
        ("    def _stream(", "    async def _stream("),
        ("-> Iterator[str]", "-> AsyncIterator[str]"),
        ("        with self.http.stream(", "        async with self.http.stream("),
        ("response.read()", "await response.aread()"),
        ("            for line in response.iter_lines()", "            async for line in response.aiter_lines()"),
    ):
        sync = sync.replace(old, new)
    return sync


ONCE_IMPORTS = "import asyncio\nimport random\nimport time\nimport uuid\n"
ONCE = '''
    def _send_once(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request that takes effect once, and repeat it while its outcome is unknown."""
        headers = {"Idempotency-Key": str(uuid.uuid4()), **(options.pop("headers", None) or {})}
        for pause in (0.2, 0.4, 0.8, 1.6):
            try:
                response = self._send(method, path, headers=headers, **options)
            except httpx.TransportError:
                pass
            else:
                running = response.status_code == 409 and "retry-after" in response.headers
                if response.status_code not in (502, 503, 504) and not running:
                    return response
            time.sleep(pause * (0.5 + random.random()))
        return self._send(method, path, headers=headers, **options)
'''
"""A method of the synchronous client that repeats requests with an idempotency key, if an endpoint is idempotent."""
