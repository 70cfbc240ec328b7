"""Cached responses, requested through several workers and instances."""

from __future__ import annotations

import os

import httpx

from tests.harness.service import Service
from tests.harness.waiting import wait_until


def ask(service: Service, path: str, method: str = "GET") -> httpx.Response:
    """Send a request over a new connection, so that any worker may receive it."""
    with service.new_client() as client:
        return client.request(method, f"/api/{path}")


def everywhere(instances: list[Service], path: str) -> set[str]:
    """Return the responses of all workers of all instances."""
    return {ask(service, path).text for _ in range(4) for service in instances}


def agreed(instances: list[Service], path: str) -> str:
    """Return the response that all instances agree on. On a busy machine Redis may be late, and a request is served
    without it."""

    def one_answer() -> set[str] | None:
        result = everywhere(instances, path)
        return result if len(result) == 1 else None

    return "".join(wait_until(one_answer, "all give one answer", 30) or ())


def unique(name: str) -> str:
    """Return a path with a unique parameter, because instances with other parameters share Redis."""
    return f"{name}?a={os.urandom(6).hex()}"
