"""The console of a service, as an operator with the link of the log uses it."""

from __future__ import annotations

import re

import httpx

from tests.harness.service import NO_TLS, Service

_LINK = re.compile(r"The console is at (http://\S+)/console/sign-in#(\S+)")


def console_link(service: Service) -> tuple[str, str]:
    """Return the address of the admin listener and the token of the last link in the log."""
    service.wait_for_log("The console is at")
    address, token = _LINK.findall(service.log)[-1]
    return address, token


def console_client(address: str, token: str | None = None) -> httpx.Client:
    """Return a client without a session, or with the token as a bearer token."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False, verify=NO_TLS)


def operator(service: Service, admin_token: str) -> httpx.Client:
    """Return a client with a session that the token of the admin listener has begun."""
    address, _ = console_link(service)
    with console_client(address, admin_token) as client:
        session = client.post("/console/api/session")
    assert session.status_code == 200, session.text
    return console_client(address, session.json()["token"])
