"""Checks of names in annotations that refer to the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
        return self.connections is None or name.casefold() in (connection.casefold() for connection in self.connections)


NO_NAMES_CHECKED = KnownNames()


def unknown_names(endpoint: Endpoint, known: KnownNames, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name in annotations that the configuration lacks, with the consequence (comments-16;
    a cache profile: caching-38).

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
    if options.connection is not None and not known.has_connection(options.connection):
        usable = ", ".join(known.connections or ())
        message = f"connection {options.connection!r} is none of {usable}: every request is answered with 500"
        if options.connection.casefold() in (connection.casefold() for connection in known.unroutable):
            message = (
                f"connection {options.connection!r} is not used, as Service:UseMultipleConnections is false: every "
                "request is answered with 500"
            )
        yield Diagnostic(endpoint.routine.identity, used.get("connection_name"), message)


def _unknown_rate_limiter(endpoint: Endpoint, known: KnownNames, line: str | None) -> Iterator[Diagnostic]:
    """Report an unknown policy, which leaves the endpoint out. A policy that is switched off does not: that is a
    choice of the operator. line: of the annotation, or None."""
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
