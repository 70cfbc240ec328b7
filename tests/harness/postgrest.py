"""Requests to PostgREST's interface and what their responses must be."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jwt

from tests.harness.database import Database

SECRET = "a secret of the tests that has more than 32 bytes"
PLAIN = {
    "Service:RoutineOptions:Enabled": "false",
    "DataProtection:Enabled": "false",
    "PostgRest:Enabled": "true",
    "PostgRest:Schemas": "api",
    "PostgRest:JwtSecret": SECRET,
}
"""Settings of a service that serves PostgREST's interface only."""


@dataclass(frozen=True)
class Case:
    """One request. body: JSON text or other text. json, text: the expected body; None: any. has: expected headers in
    lower case; None: the header must be absent."""

    request: str
    status: int = 200
    json: Any = None
    text: str | None = None
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    has: Mapping[str, str | None] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.request

    def check(self, client: httpx.Client) -> httpx.Response:
        """Send the request and compare the response."""
        method, _, path = self.request.partition(" ")
        headers = {"content-type": "application/json"} if self.body is not None else {}
        response = client.request(method, path, content=self.body, headers={**headers, **self.headers})
        assert response.status_code == self.status, response.text
        if self.json is not None:
            assert response.json() == self.json, response.text
        if self.text is not None:
            assert response.text == self.text, response.text
        for name, value in self.has.items():
            assert response.headers.get(name) == value, (name, dict(response.headers))
        return response


def error(code: str, message: str | None = None, **others: Any) -> Error:
    return Error(code, message, others)


@dataclass(frozen=True)
class Error:
    """Equal to an error body with this code, and these members if they are given."""

    code: str
    message: str | None
    others: Mapping[str, Any]

    def __eq__(self, body: object) -> bool:
        if not isinstance(body, dict) or body.keys() != {"code", "message", "details", "hint"}:
            return False
        expected = {"code": self.code, **self.others}
        if self.message is not None:
            expected["message"] = self.message
        return all(body[name] == value for name, value in expected.items())

    __hash__ = None  # type: ignore[assignment]


def token(**claims: Any) -> dict[str, str]:
    """Return the header with a signed token."""
    return {"authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}


@contextlib.contextmanager
def running_by_file(folder: Path, *switches: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a service with one worker and the configuration file `api.conf` of the folder, and end it afterwards. Its
    log is the file `log` of the folder. environment: variables that it has besides those of the test."""
    service = (sys.executable, "-m", "rowcall.service.cli", "--postgrest", "api.conf", "--HttpServer:Workers=1")
    variables = {**os.environ, **environment}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            (*service, *switches), cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)
    assert "Traceback" not in (folder / "log").read_text()


def create_roles(database: Database, *names: str) -> tuple[str, ...]:
    """Create roles of the server with names of this database. They own nothing and are left with the server."""
    roles = tuple(f"{name}_{database.name}" for name in names)
    database.execute("".join(f"create role {role} nologin;" for role in roles))
    return roles
