"""Metrics, read by the parsers of Prometheus' own Python client."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
from prometheus_client import openmetrics, parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as open_parser

from tests.harness.service import NO_TLS, Service

__all__ = ["Numbers", "admin_of", "numbers_of", "openmetrics"]


@dataclass
class Numbers:
    """families: by name, as in the parser."""

    families: dict[str, Metric] = field(default_factory=dict)

    def of(self, sample: str, **labels: str) -> float:
        """Return the sum of the samples with this name and these labels."""
        return sum(
            item.value
            for family in self.families.values()
            for item in family.samples
            if item.name == sample and labels.items() <= item.labels.items()
        )

    @property
    def samples(self) -> dict[str, set[str]]:
        """Return the names of samples, and the names of their labels."""
        labels_by_name: dict[str, set[str]] = {}
        for family in self.families.values():
            for item in family.samples:
                labels_by_name.setdefault(item.name, set()).update(item.labels)
        return labels_by_name


def numbers_of(client: httpx.Client, *, open_metrics: bool = False, path: str = "/metrics") -> Numbers:
    accept = "application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain"
    response = client.get(path, headers={"accept": accept})
    assert response.status_code == 200, response.text
    parse: Callable[[str], object] = (
        open_parser.text_string_to_metric_families if open_metrics else parser.text_string_to_metric_families
    )
    expected = "application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain; version=0.0.4"
    assert response.headers["content-type"] == f"{expected}; charset=utf-8"
    return Numbers({family.name: family for family in parse(response.text)})  # type: ignore[attr-defined]


_LOGGED = re.compile(r"the admin listener is at (\S+)")


def admin_of(service: Service, token: str | None = None) -> httpx.Client:
    """Return a client for the admin listener, at its port."""
    match = _LOGGED.search(service.wait_for_log("the admin listener is at"))
    assert match is not None
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=match[1], headers=headers, timeout=30, trust_env=False, verify=NO_TLS)
