"""Diagnostics for annotations whose capability is switched off: each names the configuration key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.building.outgoing import described_request
from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class DisabledFeature:
    """An annotation whose capability is switched off in the configuration."""

    annotation: str
    """Name of the annotation."""
    switch: str
    """The configuration key, or keys."""
    instead: str
    """The consequence, for the message."""

    def diagnostic(self, identity: str, line: str | None, *, left_out: int = 0) -> Diagnostic:
        """Return the diagnostic for a line with the annotation. identity: of the routine. left_out: number of
        endpoints that are left out."""
        message = f"{self.annotation} has no effect, as it is switched off ({self.switch}): {self.instead}"
        return Diagnostic(identity, line, message, left_out=left_out, switched=True)


WITHIN = "within"
"""Stands for `authorize within 5 minutes` in `annotation`; its consequence is that no caller is admitted."""


def disabled_features(
    endpoint: Endpoint, off: Sequence[DisabledFeature], used: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each annotation of the endpoint that is switched off. off: what is switched off.

    used: annotation → its line. An endpoint may also be a login because of its path, without a line.
    """
    for feature in off:
        if feature.annotation == WITHIN:
            if endpoint.options.fresh is not None:
                reason = f"it depends on the time of the sign-in, which is not recorded ({feature.switch})"
                message = f"{reason}: {feature.instead}"
                yield Diagnostic(endpoint.routine.identity, used.get("authorize"), message)
            continue
        is_used = feature.annotation in used or (feature.annotation == "login" and endpoint.options.login)
        if is_used:
            yield feature.diagnostic(endpoint.routine.identity, used.get(feature.annotation))


def unsent_requests(endpoint: Endpoint, types: Mapping[int, TypeInfo]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each parameter type whose comment describes an HTTP request.

    It is for services whose HTTP types are disabled, so that the request is not sent.
    """
    for parameter in endpoint.parameters:
        info = described_request(endpoint.routine, parameter, types)
        if info is not None:
            message = "the request in its comment is not sent, as Service:HttpClientOptions:Enabled is false"
            yield Diagnostic(f"type {info.display}", None, message)
