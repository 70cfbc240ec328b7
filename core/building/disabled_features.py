"""Capabilities that a comment asks for and the configuration has switched off: each is named with its switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.building.outgoing import described_request
from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class DisabledFeatures:
    annotation: str
    """By its name."""
    switch: str
    """The key of the configuration, or keys."""
    instead: str
    """What happens without it."""

    def diagnostic(self, identity: str, line: str | None, *, left_out: int = 0) -> Diagnostic:
        message = f"{self.annotation} has no effect, as it is switched off ({self.switch}): {self.instead}"
        return Diagnostic(identity, line, message, left_out=left_out, switched=True)


WITHIN = "within"
"""`authorize within 5 minutes`, which lets nobody in instead of everybody."""


def disabled_features(
    endpoint: Endpoint, off: Sequence[DisabledFeatures], used: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """used: annotation → the line it was written in. A path of the configuration makes a login without one."""
    for one in off:
        if one.annotation == WITHIN:
            if endpoint.options.fresh is not None:
                message = f"it asks when callers have signed in, and nobody knows ({one.switch}): {one.instead}"
                yield Diagnostic(endpoint.routine.identity, used.get("authorize"), message)
            continue
        asked = one.annotation in used or (one.annotation == "login" and endpoint.options.login)
        if asked:
            yield one.diagnostic(endpoint.routine.identity, used.get(one.annotation))


def unsent_requests(endpoint: Endpoint, types: Mapping[int, TypeInfo]) -> Iterator[Diagnostic]:
    """Of composite types whose comments describe one, where types send nothing."""
    for parameter in endpoint.parameters:
        info = described_request(endpoint.routine, parameter, types)
        if info is not None:
            message = "the request in its comment is not sent, as Service:HttpClientOptions:Enabled is false"
            yield Diagnostic(f"type {info.display}", None, message)
