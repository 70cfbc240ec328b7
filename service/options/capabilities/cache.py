"""Read `CacheOptions`: storage and profiles of cached responses (caching-1 to caching-7, caching-33 to caching-37).

An unusable profile or rule is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rowcall.core.cache.options import CacheOptions, Place, Profile, Rule
from rowcall.core.config import Settings
from rowcall.core.config.tree import Scalar, Section, find
from rowcall.core.text.interval import parse_interval

log = logging.getLogger("rowcall.client")

_P = "CacheOptions:"
_PROFILES = _P + "Profiles"
_PLACES = {place.value.casefold(): place for place in Place}


class _UnusableError(Exception):
    """A profile or a rule cannot be used; the message is the reason."""


def cache_options(settings: Settings) -> CacheOptions:
    if not settings.flag(_P + "Enabled"):
        return CacheOptions(redis="")
    profiles = tuple(_profiles(settings))
    if profiles:
        log.info("%d cache profiles are registered: %s", len(profiles), ", ".join(profile.name for profile in profiles))
    options = settings.read(
        CacheOptions,
        hash_from=settings.integer(_P + "HashKeyThreshold") if settings.flag(_P + "UseHashedCacheKeys") else None,
        profiles=profiles,
        operator_tags=settings.flag("Console:Enabled") and settings.flag("Console:AllowActions"),
    )
    # An empty RedisConfiguration disables Redis (caching-3).
    uses_redis = options.hybrid.uses_redis and bool((settings.text_or_none(_P + "RedisConfiguration") or "").strip())
    return replace(options, hybrid=replace(options.hybrid, uses_redis=uses_redis))


def _profiles(settings: Settings) -> Iterator[Profile]:
    for name in settings.names(_PROFILES):
        if not name.strip():
            log.warning("%s: a profile without a name is skipped", _PROFILES)
        elif not settings.flag(f"{_PROFILES}:{name}:Enabled"):
            log.info("cache profile '%s' is skipped: it is not enabled", name)
        else:
            try:
                profile = _profile(settings, name)
            except _UnusableError as error:
                log.warning("%s:%s is skipped: %s", _PROFILES, name, error)
                continue
            log.info("cache profile '%s': %s, %s", name, profile.place.value, _described(profile))
            yield profile


def _described(profile: Profile) -> str:
    lifetime = "no lifetime of its own" if profile.seconds is None else f"{profile.seconds:g} s"
    return f"{lifetime}, {len(profile.rules)} rules"


def _profile(settings: Settings, name: str) -> Profile:
    path = f"{_PROFILES}:{name}:"
    kind = (_text(settings, path + "Type") or "").strip().casefold()
    if kind not in _PLACES:
        raise _UnusableError(f"its Type is none of {', '.join(place.value for place in Place)}")
    expiration = _text(settings, path + "Expiration")
    seconds = parse_interval(expiration) if expiration else None
    if expiration and seconds is None:
        raise _UnusableError(f"its Expiration {expiration!r} is no interval such as '5 minutes'")
    return Profile(
        name=name,
        place=_PLACES[kind],
        seconds=seconds,
        parameters=_parameters(settings, path + "Parameters"),
        rules=tuple(_rules(settings, name)),
    )


def _text(settings: Settings, path: str) -> str | None:
    """Return the unconverted text, so that an invalid value skips the profile instead of preventing the start; None: it
    is not configured.
    """
    node = find(settings.root, path)
    return settings.value(path) if isinstance(node, Scalar) else None  # type: ignore[return-value]


def _parameters(settings: Settings, path: str) -> tuple[str, ...] | None:
    """Return the parameters of the cache key. None: not configured; empty: no parameter is in the key (caching-33)."""
    node = find(settings.root, path)
    if isinstance(node, Section) and node.is_array and not node.children:
        return ()
    return settings.texts(path)


def _rules(settings: Settings, name: str) -> Iterator[Rule]:
    configured = settings.value(f"{_PROFILES}:{name}:When")
    if not isinstance(configured, tuple):
        return
    for number, entry in enumerate(configured):
        place = f"{_PROFILES}:{name}:When:{number}"
        try:
            rule = _rule(entry)
        except _UnusableError as error:
            log.warning("%s is dropped: %s", place, error)
            continue
        for key in entry:
            if key.casefold() not in _OF_A_RULE:
                log.warning("%s:%s is ignored: a rule has Parameter, Value and Then", place, key)
        if not rule.values:
            log.warning("%s never applies: the list of its Value is empty", place)
        yield rule


_OF_A_RULE = frozenset({"parameter", "value", "then"})


def _rule(entry: Any) -> Rule:
    values = {key.casefold(): value for key, value in entry.items()} if isinstance(entry, Mapping) else {}
    parameter = str(values.get("parameter") or "").strip()
    if not parameter:
        raise _UnusableError("it names no Parameter")
    then = str(values.get("then") or "").strip()
    skips = then.casefold() == "skip"
    seconds = parse_interval(then) if then else None
    if not skips and seconds is None:
        raise _UnusableError(f"its Then {then!r} is neither 'skip' nor an interval" if then else "it has no Then")
    value = values.get("value")
    if isinstance(value, Mapping):
        raise _UnusableError("its Value is neither one value nor a list of them")
    listed = tuple(value) if isinstance(value, tuple | list) else (value,)
    return Rule(parameter, tuple(None if item is None else str(item).casefold() for item in listed), seconds)
