"""Answers that are kept, seen through several workers and instances."""

from __future__ import annotations

import os

import httpx

from tests.harness.service import Service
from tests.harness.waiting import wait_until


def ask(service: Service, path: str, method: str = "GET") -> httpx.Response:
    """On a connection of its own: any worker may get it."""
    with service.new_client() as client:
        return client.request(method, f"/api/{path}")


def everywhere(instances: list[Service], path: str) -> set[str]:
    """Whichever worker of whichever instance is asked."""
    return {ask(service, path).text for _ in range(4) for service in instances}


def agreed(instances: list[Service], path: str) -> str:
    """What all of them give. On a machine so busy that Redis is late, a request is answered without it."""

    def one_answer() -> set[str] | None:
        result = everywhere(instances, path)
        return result if len(result) == 1 else None

    return "".join(wait_until(one_answer, "all give one answer", 30) or ())


def unique(name: str) -> str:
    """Instances of other parameters share Redis."""
    return f"{name}?a={os.urandom(6).hex()}"
