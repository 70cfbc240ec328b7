"""Diagnostics of cached endpoints: settings without effect, and parts of a request on which its response may depend but
the cache key does not.

Errors about unknown profiles are in `core.building.configuration_checks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rowcall.core.auth.options import LoginOptions
from rowcall.core.auth.parameter_injection import injected_parameters
from rowcall.core.cache.options import CacheOptions
from rowcall.core.cache.plan import cache_plan, key_parameters, rule_problems
from rowcall.core.endpoint.endpoint import Endpoint, HeadersMode
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.tables.routines import TableOperation


def cache_diagnostics(endpoint: Endpoint, options: CacheOptions, mapping: LoginOptions) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a cached endpoint. mapping: of claims, to find parameters that depend on the caller."""
    if endpoint.options.caching is None:
        return
    for message in (*rule_problems(endpoint, options), *_warnings(endpoint, options, mapping)):
        yield Diagnostic(endpoint.routine.identity, None, message)


def _warnings(endpoint: Endpoint, options: CacheOptions, mapping: LoginOptions) -> Iterator[str]:
    caching = endpoint.options.caching
    if options.enabled and caching is not None and not caching.requested:
        settings = {"cache_expires": caching.expires, "cache_tags": caching.tags or None, "cache_stale": caching.stale}
        for word in (word for word, setting in settings.items() if setting is not None):
            yield f"{endpoint.name}: {word} has no effect, as nothing is cached; add cached"
    if not options.enabled or caching is None or not caching.requested:
        return
    plan = cache_plan(endpoint, options, mapping)
    if plan is None:
        if options.max_rows != 0 and not _is_table_operation(endpoint):
            yield f"{endpoint.name}: results of this kind are never cached; cached has no effect"
        return
    if endpoint.sets_response and not endpoint.passes_through:
        yield (
            f"{endpoint.name}: cached responses have the default status and headers, not those that the routine "
            "sets; leave out cached, or let it set none"
        )
    if plan.seconds == 0 and not any(rule.seconds for _, rule in plan.rules):
        yield (
            f"{endpoint.name}: cached responses expire at once, as their lifetime is 0; only simultaneous requests "
            "share one"
        )
    yield from _stale_warnings(endpoint, options, mapping)
    key = key_parameters(endpoint, options)
    if not key and caching.parameters is None and endpoint.parameters and options.profile(caching.profile).parameters:
        yield (
            f"{endpoint.name}: it has none of the Parameters of cache profile '{caching.profile}'; all requests share "
            "one response"
        )
    for name in caching.parameters or ():
        if any(endpoint.parameters[index].db_name == name for index in endpoint.outgoing.filled):
            yield f"{endpoint.name}: {name} is filled by another service and is no part of the cache key"
    for item in injected_parameters(endpoint, mapping):
        if not key >> item.index & 1:
            yield (
                f"{endpoint.name}: {item.parameter.db_name} is filled from the identity of the caller and is not part "
                "of the cache key; all callers share one response"
            )
    if endpoint.options.request_headers is HeadersMode.CONTEXT:
        yield f"{endpoint.name}: the request's headers are no part of the cache key; all requests share one response"
    if endpoint.options.user_context and mapping.address_key is not None:
        yield f"{endpoint.name}: {mapping.address_key} is no part of the cache key; all addresses share one response"


def _stale_warnings(endpoint: Endpoint, options: CacheOptions, mapping: LoginOptions) -> Iterator[str]:
    caching = endpoint.options.caching
    plan = cache_plan(endpoint, options, mapping)
    if caching is None or plan is None or caching.stale is None:
        return
    if endpoint.passes_through:
        yield f"{endpoint.name}: cache_stale has no effect on responses that a proxy passes through"
    elif plan.seconds is None and all(rule.seconds is None for _, rule in plan.rules):
        yield f"{endpoint.name}: cache_stale has no effect, as cached responses do not expire; add cache_expires"


def _is_table_operation(endpoint: Endpoint) -> bool:
    """Return whether the comment is that of a table, where `cached` is meant for the operations that read."""
    return isinstance(endpoint.routine.source, TableOperation)


def unused_profiles(options: CacheOptions, endpoints: Iterable[Endpoint]) -> list[str]:
    """Return the names of configured profiles that no endpoint uses (caching-37)."""
    used = {item.options.caching.profile for item in endpoints if item.options.caching is not None}
    return [item.name for item in options.profiles if item.name not in used]
