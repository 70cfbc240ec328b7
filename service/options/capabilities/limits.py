"""Read `RateLimiterOptions`: policies of rate limiting (limits-1 to limits-8).

An unusable policy or source is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from rowcall.core.config import Settings
from rowcall.core.config.tree import Scalar, Section, find
from rowcall.core.limits.policy import Kind, LimitOptions, Policy, Source, SourceKind
from rowcall.service.log.options import HEADER_NAME
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_P = "RateLimiterOptions:"
_POLICIES = _P + "Policies"
_KINDS = {kind.value.casefold(): kind for kind in Kind}
_SOURCES = {kind.value.casefold(): kind for kind in SourceKind}
_PERMITS = {
    Kind.FIXED_WINDOW: ("PermitLimit", 100),
    Kind.SLIDING_WINDOW: ("PermitLimit", 100),
    Kind.TOKEN_BUCKET: ("TokenLimit", 100),
    Kind.CONCURRENCY: ("PermitLimit", 10),
}

_PATHS = ("Stats", "HealthChecks", "Service:McpOptions", "Auth:PasskeyAuth", "Auth:External", "PostgRest")
"""Sections of reserved paths that may name a policy."""


def limit_options(settings: Settings) -> LimitOptions:
    node = find(settings.root, _POLICIES)
    if not settings.flag(_P + "Enabled"):
        for key, _ in _named_by_paths(settings):
            log.warning("%s has no effect, as it is switched off (%sEnabled): nothing is limited", key, _P)
        return LimitOptions()
    if isinstance(node, Section) and node.children and all(name.isdecimal() for name in settings.names(_POLICIES)):
        raise StartupError(f'{_POLICIES}: policies have names, as in {{ "slow": {{ … }} }}; a list has none')
    policies = tuple(_policies(settings))
    default = settings.text_or_none(_P + "DefaultPolicy") or None
    if default is not None and default not in {policy.name for policy in policies}:
        log.warning("%sDefaultPolicy: '%s' is no enabled policy; endpoints that name none are not limited", _P, default)
    for key, policy_name in _named_by_paths(settings):
        if policy_name not in {policy.name for policy in policies}:
            log.warning("%s: '%s' is no enabled policy; these paths are not limited", key, policy_name)
    return LimitOptions(
        enabled=True,
        default=default,
        policies=policies,
        disabled=frozenset(name for name in settings.names(_POLICIES) if not _is_enabled(settings, name)),
        redis=settings.text_or_none(_P + "RedisConfiguration") or None,
    )


def _is_enabled(settings: Settings, policy: str) -> bool:
    return settings.flag(f"{_POLICIES}:{policy}:Enabled")


def _named_by_paths(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the keys with which enabled sections name a policy, and the names."""
    for section in _PATHS:
        key = f"{section}:RateLimiterPolicy"
        policy_name = settings.text_or_none(key) if settings.flag(f"{section}:Enabled") else None
        if policy_name:
            yield key, policy_name


def _policies(settings: Settings) -> Iterator[Policy]:
    for name in settings.names(_POLICIES):
        path = f"{_POLICIES}:{name}:"
        if not _is_enabled(settings, name):
            continue
        kind = _KINDS.get((_written(settings, path + "Type") or "").strip().casefold())
        if kind is None:
            log.warning(
                "%s:%s is skipped: its Type is none of %s", _POLICIES, name, ", ".join(member.value for member in Kind)
            )
            continue
        yield _policy(settings, name, kind)


def _policy(settings: Settings, name: str, kind: Kind) -> Policy:
    path = f"{_POLICIES}:{name}:"

    def number(key: str, default: int) -> int:
        """Return an integer; the default depends on the kind, and the table of keys has only one."""
        text = _written(settings, path + key)
        return settings.integer(path + key) if text and text.strip() else default

    limit, permits = _PERMITS[kind]
    windowed = kind in (Kind.FIXED_WINDOW, Kind.SLIDING_WINDOW)
    bucket = kind is Kind.TOKEN_BUCKET
    status = settings.integer_or_none(path + "StatusCode")
    message = settings.text_or_none(path + "StatusMessage")
    sources, free = _partition(settings, path + "Partition:")
    if kind is not Kind.CONCURRENCY and not settings.flag(path + "AutoReplenishment"):
        log.warning("%sAutoReplenishment has no effect: permits are always replenished as time passes", path)
    return Policy(
        name=name,
        kind=kind,
        permits=number(limit, permits),
        seconds=float(number("WindowSeconds", 60) if windowed else number("ReplenishmentPeriodSeconds", 10)),
        segments=number("SegmentsPerWindow", 6) if kind is Kind.SLIDING_WINDOW else 1,
        added=number("TokensPerPeriod", 10) if bucket else 0,
        queue=number("QueueLimit", 5 if kind is Kind.CONCURRENCY else 10),
        oldest_first=settings.flag(path + "OldestFirst"),
        sources=sources,
        free_for_users=free,
        status=settings.integer(_P + "StatusCode") if status is None else status,
        message=settings.text_or_none(_P + "StatusMessage") if message is None else message,
    )


def _partition(settings: Settings, path: str) -> tuple[tuple[Source, ...], bool]:
    if find(settings.root, path.rstrip(":")) is None:
        return (), False
    free = settings.flag(path + "BypassAuthenticated")
    entries = settings.value(path + "Sources")
    sources = tuple(_sources(entries, path + "Sources")) if isinstance(entries, tuple | list) else ()
    if not sources and not free:
        log.warning("%s names no source that distinguishes callers; all callers share one limit", path.rstrip(":"))
    return sources, free


def _sources(entries: tuple[object, ...] | list[object], path: str) -> Iterator[Source]:
    for number, entry in enumerate(entries):
        values = {key.casefold(): value for key, value in entry.items()} if isinstance(entry, Mapping) else {}
        kind = _SOURCES.get(str(values.get("type") or "").strip().casefold())
        if kind is None:
            log.warning(
                "%s:%d is skipped: its Type is none of %s",
                path,
                number,
                ", ".join(member.value for member in SourceKind),
            )
            continue
        key = "value" if kind is SourceKind.STATIC else "name"
        text = str(values.get(key) or "")
        if not text and kind is not SourceKind.ADDRESS:
            log.warning("%s:%d is skipped: %s needs a %s", path, number, kind.value, key.capitalize())
            continue
        if kind is SourceKind.HEADER and not HEADER_NAME.fullmatch(text):
            log.warning("%s:%d is skipped: %r is not the name of a header", path, number, text)
            continue
        yield Source(kind, text)


def _written(settings: Settings, path: str) -> str | None:
    """Return the unconverted text, which the caller validates; None: it is not configured."""
    node = find(settings.root, path)
    return settings.value(path) if isinstance(node, Scalar) else None  # type: ignore[return-value]
