"""Annotations name things of the configuration; here is what becomes of a name that the configuration lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.diagnostics import Diagnostic
from rowcall.core.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What annotations may name, as written in the configuration. None: nobody has looked, so everything passes."""

    error_policies: frozenset[str] | None = None
    retry_strategies: frozenset[str] | None = None
    rules: frozenset[str] | None = None


NOBODY_LOOKED = KnownNames()


def unknown_names(endpoint: Endpoint, known: KnownNames) -> Iterator[Diagnostic]:
    """One warning for each name that means nothing, with what holds instead (reference 01, 5.4)."""
    options = endpoint.options
    checks = (
        ("error_code_policy", options.error_policy, known.error_policies, "every error is 500"),
        ("retry_strategy", options.retry_strategy, known.retry_strategies, "the default strategy holds"),
    )
    for annotation, name, names, instead in checks:
        if name is not None and names is not None and name not in names:
            message = f"{annotation} {name!r} is none of {', '.join(sorted(names)) or 'the configured ones (none)'}"
            yield Diagnostic(endpoint.routine.identity, None, f"{message}; {instead}")
