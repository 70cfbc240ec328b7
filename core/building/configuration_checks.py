"""Checks of annotations that depend on the configuration: names that it contains, and capabilities that are off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.building.outgoing import described_request
from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that annotations may use, as written in the configuration. None: names of this kind are not checked.

    rules: those of `validate`.
    """

    error_policies: frozenset[str] | None = None
    retry_strategies: frozenset[str] | None = None
    rules: frozenset[str] | None = None
    disabled_rules: frozenset[str] = frozenset()
    """Configured rules that `ValidationOptions:Enabled` switches off."""
    rate_limiters: frozenset[str] | None = None
    disabled_rate_limiters: frozenset[str] = frozenset()
    """Configured policies that are switched off."""
    cache_profiles: frozenset[str] | None = None
    connections: tuple[str, ...] | None = None
    """Connections on which endpoints may run, compared without regard to case."""
    unroutable: tuple[str, ...] = ()
    """Connections that `Service:UseMultipleConnections` would allow endpoints to use."""

    def has_connection(self, name: str) -> bool:
        """Return whether endpoints may run on the connection, compared without regard to case. True if connections are
        not checked."""
        return self.connections is None or name.casefold() in (connection.casefold() for connection in self.connections)


NO_NAMES_CHECKED = KnownNames()


def unknown_names(endpoint: Endpoint, known: KnownNames, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name in annotations that the configuration lacks, with the consequence (comments-16;
    a cache profile: caching-38), and for a rate limiter that is switched off. Rules of `validate` are checked in
    `core.building.protective_lines`.

    used: annotation → its line.
    """
    options = endpoint.options
    profile = None if options.caching is None else options.caching.profile
    checks = (
        ("error_code_policy", options.error_policy, known.error_policies, "every error is 500"),
        ("retry_strategy", options.retry_strategy, known.retry_strategies, "the default strategy holds"),
        ("cache_profile", profile, known.cache_profiles, None),
    )
    for annotation, name, names, instead in checks:
        if name is None or names is None or name in names:
            continue
        message = f"{annotation} {name!r} is none of {', '.join(sorted(names)) or 'the configured ones (none)'}"
        message = f"{endpoint.name}: {message}" if instead is None else f"{message}; {instead}"
        yield Diagnostic(endpoint.routine.identity, used.get(annotation), message, fatal=instead is None)
    yield from _unknown_rate_limiter(endpoint, known, used.get("rate_limiter"))
    yield from _no_connection_of_a_tenant(endpoint, known, used.get("tenant"))
    if options.connection is not None and not known.has_connection(options.connection):
        usable = ", ".join(known.connections or ())
        message = f"connection {options.connection!r} is none of {usable}: every request is answered with 500"
        if options.connection.casefold() in (connection.casefold() for connection in known.unroutable):
            message = (
                f"connection {options.connection!r} is not used, as Service:UseMultipleConnections is false: every "
                "request is answered with 500"
            )
        yield Diagnostic(endpoint.routine.identity, used.get("connection_name"), message)


def _no_connection_of_a_tenant(endpoint: Endpoint, known: KnownNames, line: str | None) -> Iterator[Diagnostic]:
    """Yield a diagnostic if no configured connection has a name that fits the pattern of `tenant … as connection`; the
    endpoint is left out. line: of the annotation, or None."""
    tenant = endpoint.options.tenant
    if tenant is None or not tenant.connection or known.connections is None or tenant.connections(known.connections):
        return
    is_off = tenant.connections(known.unroutable)
    reason = "Service:UseMultipleConnections is false" if is_off else "no connection has such a name"
    message = f"tenant as connection {tenant.connection}: {reason}; the endpoint is left out"
    yield Diagnostic(endpoint.routine.identity, line, message, left_out=1)


def _unknown_rate_limiter(endpoint: Endpoint, known: KnownNames, line: str | None) -> Iterator[Diagnostic]:
    """Yield a diagnostic for a policy that is unknown or switched off. An unknown policy leaves the endpoint out. If
    the operator has switched the policy off, the endpoint is served without a limit. line: of the annotation, or None.
    """
    name = endpoint.options.rate_limiter
    if name is None or known.rate_limiters is None or name in known.rate_limiters:
        return
    disabled = name in known.disabled_rate_limiters
    if disabled:
        message = f"rate_limiter {name!r} is switched off (RateLimiterOptions:Policies:{name}:Enabled)"
        message = f"{message}: the endpoint is not limited"
    else:
        listed = ", ".join(sorted(known.rate_limiters | known.disabled_rate_limiters))
        message = f"rate_limiter {name!r} is none of {listed or 'the configured ones (none)'}"
        message = f"{message}; the endpoint is left out"
    yield Diagnostic(endpoint.routine.identity, line, message, left_out=0 if disabled else 1)


@dataclass(frozen=True, slots=True)
class DisabledFeature:
    annotation: str
    """Name of the annotation."""
    switch: str
    """The configuration key, or keys."""
    instead: str
    """The consequence, for the message."""

    def diagnostic(self, identity: str, line: str | None, *, left_out: int = 0) -> Diagnostic:
        """Return the diagnostic. identity: of the object. line: of the annotation, or None. left_out: number of
        endpoints that are left out because of it."""
        message = f"{self.annotation} has no effect, as it is switched off ({self.switch}): {self.instead}"
        return Diagnostic(identity, line, message, left_out=left_out, switched=True)


WITHIN = "within"
"""Name for `authorize within 5 minutes`, whose consequence is that no caller is admitted."""


def disabled_features(
    endpoint: Endpoint, off: Sequence[DisabledFeature], used: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each annotation of the endpoint whose capability is switched off in the configuration.
    Such an annotation has no effect; but an endpoint with `authorize within` admits no caller.

    off: these capabilities. used: annotation → its line; an endpoint may be a login because of its path, without a
    line.
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
    """Yield a diagnostic for each parameter of an HTTP type, whose request is not sent; for an expanded composite, the
    same diagnostic for each of its fields. Call this only if HTTP types are disabled."""
    for parameter in endpoint.parameters:
        info = described_request(endpoint.routine, parameter, types)
        if info is not None:
            message = "the request in its comment is not sent, as Service:HttpClientOptions:Enabled is false"
            yield Diagnostic(f"type {info.display}", None, message)
