"""Read `RateLimiterOptions`: policies of rate limiting (limits-1 to limits-8).

An unusable policy or source is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from rowcall.core.config import Settings
from rowcall.core.config.sections.limits import (
    RateLimiter,
    RateLimitPartition,
    RateLimitPolicy,
    RateLimitSource,
    ReservedPathLimit,
)
from rowcall.core.limits.policy import Kind, LimitOptions, Policy, Source, SourceKind
from rowcall.service.log.options import HEADER_NAME
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_P = "RateLimiterOptions:"
_POLICIES = _P + "Policies"
_PATHS = (
    *("Stats", "HealthChecks", "Service:McpOptions", "PostgRest"),
    *("Auth:PasskeyAuth", "Auth:SecondFactor", "Auth:External"),
)
"""Sections of reserved paths that may name a policy."""


def limit_options(settings: Settings) -> LimitOptions:
    """Return the options of rate limiting; disabled ones if it is off. An unusable policy is left out with a warning,
    so it limits nothing. Raises `StartupError` if the policies are a list, in which they have no names, or if reserved
    paths name a policy that does not exist or cannot be used.
    """
    options = settings.read_enabled(RateLimiter)
    if options is None:
        for key, _ in _named_by_paths(settings):
            log.warning("%s has no effect, as it is switched off (%sEnabled): nothing is limited", key, _P)
        return LimitOptions()
    names = settings.names_of(RateLimitPolicy)
    if names and all(name.isdecimal() for name in names):
        raise StartupError(f'{_POLICIES}: policies have names, as in {{ "slow": {{ … }} }}; a list has none')
    policies = tuple(_policies(settings, options))
    default = options.default_policy
    if default is not None and default not in {policy.name for policy in policies}:
        log.warning("%sDefaultPolicy: '%s' is no enabled policy; endpoints that name none are not limited", _P, default)
    disabled = frozenset(name for name in names if not settings.is_enabled(RateLimitPolicy, name))
    _check_paths(settings, frozenset(policy.name for policy in policies), disabled)
    return LimitOptions(enabled=True, default=default, policies=policies, disabled=disabled, redis=options.redis)


def _check_paths(settings: Settings, usable: frozenset[str], disabled: frozenset[str]) -> None:
    """Warn about reserved paths whose policy is disabled. Raises `StartupError` for a name that no policy has: unlike
    an endpoint, these paths cannot be left out. usable, disabled: names of policies."""
    for key, name in _named_by_paths(settings):
        if name in disabled:
            log.warning("%s: %s:%s is switched off; these paths are not limited", key, _POLICIES, name)
        elif name not in usable:
            listed = ", ".join(sorted(usable | disabled)) or "the configured ones (none)"
            raise StartupError(f"{key} names {name!r}, which is none of {listed}")


def _named_by_paths(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield key and name of the policy for each enabled section of reserved paths that names one."""
    for section in _PATHS:
        named = settings.read_enabled(ReservedPathLimit, section)
        if named is not None and named.policy is not None:
            yield f"{section}:RateLimiterPolicy", named.policy


def _policies(settings: Settings, options: RateLimiter) -> Iterator[Policy]:
    for name in settings.names_of(RateLimitPolicy):
        keys = settings.read_enabled(RateLimitPolicy, name)
        if keys is None:
            continue
        kind = next((kind for kind in Kind if kind.value == keys.type), None)
        if kind is None:
            log.warning(
                "%s:%s is skipped: its Type is none of %s", _POLICIES, name, ", ".join(member.value for member in Kind)
            )
            continue
        if kind is not Kind.CONCURRENCY and not keys.auto_replenishment:
            log.warning(
                "%s:%s:AutoReplenishment has no effect: permits are always replenished as time passes", _POLICIES, name
            )
        sources, free = _partition(settings, name)
        bucket, concurrent = kind is Kind.TOKEN_BUCKET, kind is Kind.CONCURRENCY
        windowed = kind in (Kind.FIXED_WINDOW, Kind.SLIDING_WINDOW)
        permits = keys.token_limit if bucket else keys.permit_limit
        yield Policy(
            name=name,
            kind=kind,
            permits=permits or (10 if concurrent else 100),
            seconds=float(keys.window_seconds if windowed else keys.replenishment_period_seconds),
            segments=keys.segments_per_window if kind is Kind.SLIDING_WINDOW else 1,
            added=keys.tokens_per_period if bucket else 0,
            queue=(5 if concurrent else 10) if keys.queue_limit is None else keys.queue_limit,
            oldest_first=keys.oldest_first,
            sources=sources,
            free_for_users=free,
            status=options.status if keys.status is None else keys.status,
            message=options.message if keys.message is None else keys.message,
        )


def _partition(settings: Settings, policy: str) -> tuple[tuple[Source, ...], bool]:
    """Return what distinguishes callers, each of whom has a limit of their own (empty: all callers share one), and
    whether signed-in callers are not limited. policy: its name.
    """
    if not settings.contains(RateLimitPartition, policy):
        return (), False
    free = settings.read(RateLimitPartition, policy).bypass_authenticated
    sources = tuple(_sources(settings, policy))
    if not sources and not free:
        log.warning(
            "%s:%s:Partition names no source that distinguishes callers; all callers share one limit", _POLICIES, policy
        )
    return sources, free


def _sources(settings: Settings, policy: str) -> Iterator[Source]:
    for number in settings.names_of(RateLimitSource, policy):
        keys = settings.read(RateLimitSource, policy, number)
        place = f"{_POLICIES}:{policy}:Partition:Sources:{number}"
        kind = next((kind for kind in SourceKind if kind.value == keys.type), None)
        if kind is None:
            kinds = ", ".join(member.value for member in SourceKind)
            log.warning("%s is skipped: its Type is none of %s", place, kinds)
            continue
        text = (keys.value if kind is SourceKind.STATIC else keys.name) or ""
        if not text and kind is not SourceKind.ADDRESS:
            key = "Value" if kind is SourceKind.STATIC else "Name"
            log.warning("%s is skipped: %s needs a %s", place, kind.value, key)
        elif kind is SourceKind.HEADER and not HEADER_NAME.fullmatch(text):
            log.warning("%s is skipped: %r is not the name of a header", place, text)
        else:
            yield Source(kind, text)
