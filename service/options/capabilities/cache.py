"""Read `CacheOptions`: storage and profiles of cached responses (caching-1 to caching-7, caching-33 to caching-37).

An unusable profile or rule is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rowcall.core.cache.options import CacheOptions, Place, Profile, ProfileKeys, RedisKeys, Rule
from rowcall.core.config import Settings
from rowcall.core.operations.console import ConsoleOptions
from rowcall.core.sections.keys import JsonValue
from rowcall.core.text.interval import parse_interval

log = logging.getLogger("rowcall.client")

_P = "CacheOptions:"
_PROFILES = _P + "Profiles"


class _UnusableError(Exception):
    """A profile or a rule cannot be used; the message is the reason."""


def cache_options(settings: Settings) -> CacheOptions:
    """Return the options of cached responses; those of a disabled section cache nothing. Logs the profiles."""
    if not settings.is_enabled(CacheOptions):
        return CacheOptions()
    profiles = tuple(_profiles(settings))
    if profiles:
        log.info("%d cache profiles are registered: %s", len(profiles), ", ".join(profile.name for profile in profiles))
    console, redis = settings.read_enabled(ConsoleOptions), settings.read(RedisKeys)
    options = settings.read(
        CacheOptions,
        profiles=profiles,
        operator_tags=console is not None and console.allow_actions,
        redis=redis.usable,
    )
    # An empty RedisConfiguration disables Redis (caching-3).
    uses_redis = options.hybrid.uses_redis and bool((redis.address or "").strip())
    return replace(options, hybrid=replace(options.hybrid, uses_redis=uses_redis))


def _profiles(settings: Settings) -> Iterator[Profile]:
    for name in settings.names_of(ProfileKeys):
        if not name.strip():
            log.warning("%s: a profile without a name is skipped", _PROFILES)
        elif not settings.is_enabled(ProfileKeys, name):
            log.info("cache profile '%s' is skipped: it is not enabled", name)
        else:
            try:
                profile = _profile(settings, name)
            except _UnusableError as error:
                log.warning("%s:%s is skipped: %s", _PROFILES, name, error)
                continue
            log.info("cache profile '%s': %s, %s", name, profile.place.value, _format_profile(profile))
            yield profile


def _format_profile(profile: Profile) -> str:
    lifetime = "no lifetime of its own" if profile.seconds is None else f"{profile.seconds:g} s"
    return f"{lifetime}, {len(profile.rules)} rules"


def _profile(settings: Settings, name: str) -> Profile:
    keys = settings.read(ProfileKeys, name)
    place = next((place for place in Place if place.value == keys.type), None)
    if place is None:
        raise _UnusableError(f"its Type is none of {', '.join(place.value for place in Place)}")
    seconds = parse_interval(keys.expiration) if keys.expiration else None
    if keys.expiration and seconds is None:
        raise _UnusableError(f"its Expiration {keys.expiration!r} is no interval such as '5 minutes'")
    rules = tuple(_rules(name, keys.when))
    return Profile(name, place, seconds, keys.parameters, rules)


def _rules(name: str, configured: JsonValue) -> Iterator[Rule]:
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
