"""A real Prometheus that scrapes one address (the Debian package `prometheus`)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.harness.postgres import free_port
from tests.harness.waiting import wait_until

PROGRAM = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[httpx.Client]:
    """Scrape `target` (host:port) every second. Provides a client of the API of Prometheus."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(
        "global: { scrape_interval: 1s }\n"
        f"scrape_configs: [ {{ job_name: rowcall, static_configs: [ {{ targets: ['{target}'] }} ] }} ]\n"
    )
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(PROGRAM),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=30, trust_env=False) as client:
            wait_until(lambda: _is_ready(client), "Prometheus is ready", 60)
            yield client
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


def query(client: httpx.Client, expression: str) -> list[dict[str, Any]]:
    """Return the result of an instant query; fail if Prometheus refuses it."""
    response = client.get("/api/v1/query", params={"query": expression}).json()
    assert response["status"] == "success", f"{expression}: {response}"
    result: list[dict[str, Any]] = response["data"]["result"]
    return result
