"""Connections to each worker of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from tests.harness.service import Service


@dataclass(frozen=True)
class Way:
    """An open connection to a worker."""

    worker: int
    client: httpx.Client
    version: str


def ways(service: Service, url: str, path: str, stack: ExitStack, **options: Any) -> Iterator[Way]:
    """Yield one connection for each worker: connections are opened, with requests for `path`, until every worker has
    one."""
    waiting = set(service.pids())
    for _ in range(200):
        if not waiting:
            return
        limits = httpx.Limits(max_connections=1, keepalive_expiry=None)
        client = stack.enter_context(httpx.Client(base_url=url, limits=limits, trust_env=False, timeout=60, **options))
        response = client.get(path)
        _, port = response.extensions["network_stream"].get_extra_info("client_addr")[:2]
        worker = next(pid for pid in service.pids() if port in _peers(pid))
        if worker in waiting:
            waiting.remove(worker)
            yield Way(worker, client, response.http_version)
    raise AssertionError(f"no connection was taken by {waiting}")


def _peers(pid: int) -> set[int]:
    return {connection.raddr.port for connection in psutil.Process(pid).net_connections("tcp") if connection.raddr}
