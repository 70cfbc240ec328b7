"""Read `CacheOptions`: storage and profiles of cached responses (caching-1 to caching-7, caching-33 to caching-37).

An unusable profile or rule is skipped with a warning.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rowcall.core.cache.options import CacheOptions, HybridOptions, Place, Profile, Rule
from rowcall.core.config import Settings
from rowcall.core.config.tree import Scalar, Section, find
from rowcall.core.text.interval import parse_interval
from rowcall.service.log.options import HEADER_NAME
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_P = "CacheOptions:"
_PROFILES = _P + "Profiles"
_PLACES = {place.value.casefold(): place for place in Place}
_NO_SEGMENTS = re.compile(r"[{}?#%\\\x00-\x1f]")
"""Characters that a requested path cannot contain, or that have another meaning in it."""


class _UnusableError(Exception):
    """A profile or a rule cannot be used; the message is the reason."""


def cache_options(settings: Settings) -> CacheOptions:
    if not settings.flag(_P + "Enabled"):
        return CacheOptions()
    hashes = settings.flag(_P + "UseHashedCacheKeys")
    profiles = tuple(_profiles(settings))
    if profiles:
        log.info("%d cache profiles are registered: %s", len(profiles), ", ".join(profile.name for profile in profiles))
    return CacheOptions(
        enabled=True,
        place=Place(settings.choice(_P + "Type")),
        memory=settings.integer(_P + "MemoryCacheMaximumMegabytes") * 1_048_576,
        prune_seconds=float(settings.integer(_P + "MemoryCachePruneIntervalSeconds")),
        redis=settings.text(_P + "RedisConfiguration"),
        max_rows=settings.integer_or_none(_P + "MaxCacheableRows"),
        hash_from=settings.integer(_P + "HashKeyThreshold") if hashes else None,
        suffix=_suffix(settings),
        invalidate_by_endpoint_method=settings.flag(_P + "InvalidateCacheUseEndpointMethod"),
        status_header=_status_header(settings),
        tags_path=_tags_path(settings),
        tags_roles=frozenset(settings.texts(_P + "TagsRoles") or ()),
        hybrid=HybridOptions(
            # An empty RedisConfiguration disables Redis (caching-3).
            uses_redis=settings.flag(_P + "HybridCacheUseRedisBackend")
            and bool((settings.text_or_none(_P + "RedisConfiguration") or "").strip()),
            longest_key=settings.integer(_P + "HybridCacheMaximumKeyLength"),
            largest_answer=settings.integer(_P + "HybridCacheMaximumPayloadBytes"),
            seconds=settings.seconds_or_none(_P + "HybridCacheDefaultExpiration"),
            local_seconds=settings.seconds_or_none(_P + "HybridCacheLocalCacheExpiration"),
        ),
        profiles=profiles,
        operator_tags=settings.flag("Console:Enabled") and settings.flag("Console:AllowActions"),
    )


def _suffix(settings: Settings) -> str | None:
    """Return the suffix of paths for invalidation, or None. Raises StartupError if no request path can contain it."""
    key = _P + "InvalidateCacheSuffix"
    suffix = (settings.text_or_none(key) or "").strip().strip("/")
    if not suffix:
        return None
    if _NO_SEGMENTS.search(suffix) or {"", ".", ".."} & set(suffix.split("/")):
        raise StartupError(f"{key}: {suffix!r} cannot be the end of a path; a word such as purge can")
    return suffix


def _status_header(settings: Settings) -> str | None:
    key = _P + "StatusHeader"
    name = (settings.text_or_none(key) or "").strip()
    if name and not HEADER_NAME.fullmatch(name):
        raise StartupError(f"{key}: {name!r} is not the name of a header")
    return name.lower() or None


def _tags_path(settings: Settings) -> str | None:
    key = _P + "TagsPath"
    path = (settings.text_or_none(key) or "").strip()
    if path and (not path.startswith("/") or _NO_SEGMENTS.search(path)):
        raise StartupError(f"{key}: {path!r} is no path such as /api/invalidate")
    return path or None


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
    """Return the unconverted text, so that an invalid value skips the profile instead of preventing the start."""
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
