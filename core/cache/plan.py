"""The cache plan of an endpoint, from its options and the configuration: keys, lifetimes, and whether it is cached at
all.

It applies the rules caching-1 to caching-38.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rowcall.core.auth.options import LoginOptions
from rowcall.core.auth.parameter_injection import filled_parameters
from rowcall.core.binding.json_values import Reader
from rowcall.core.cache.key import characters
from rowcall.core.cache.options import TAGGED, CacheOptions, Place, Profile, Rule, endpoint_tag, profile_tag
from rowcall.core.endpoint.before_routine import BeforeCommand, BeforeValue
from rowcall.core.endpoint.call import UncallableError, all_present, call_sql
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath, ResultShape
from rowcall.core.endpoint.result_shape import BYTES
from rowcall.core.tables.operations import Command
from rowcall.core.tables.routines import TableOperation


@dataclass(frozen=True, slots=True)
class CachePlan:
    """How responses of one endpoint are cached: keys, lifetimes and limits."""

    place: Place
    prefix: bytes
    """Prefix of every key: profile, endpoint and routine (caching-8)."""
    parameters: int
    """Bit mask of the parameters in the key, by index."""
    seconds: float | None
    """Lifetime; None: neither comment nor profile specifies one."""
    rules: tuple[tuple[int, Rule], ...] = ()
    """Rules, each with the index of its parameter."""
    max_rows: int = 0
    """Maximum number of rows of a set; 0: no limit."""
    tags: tuple[str, ...] = ()
    """Tags by which responses are invalidated together; may contain `{parameter}`."""
    further_tags: tuple[str, ...] = ()
    """Tags of every response besides those of the comment. They contain blanks, which tags of comments cannot."""
    hash_from: int | None = None
    """Keys with more characters are replaced by their hash."""
    longest_key: int | None = None
    """Responses with a longer key are not stored."""
    uncounted: int = 0
    """Characters of the prefix that do not count for these limits: all except the names of profile and routine."""
    everything: bool = False
    """Whether the whole request is part of the key, because another service answers and no parameter of the routine is
    supplied by requests (caching-19)."""
    stale: Stale | None = None
    """How long a response may be used after its lifetime. None: not at all."""
    per_user: bool = False
    """Whether claims are part of the key, because they are in session variables (caching-12)."""
    surroundings: bool = False
    """Whether tenant and time zone of the request are part of the key."""
    before: tuple[BeforeValue, ...] = ()
    """Request values of `BeforeRoutineCommands`, which may for example select the tenant."""


def cache_plan(
    endpoint: Endpoint,
    options: CacheOptions,
    login: LoginOptions,
    *,
    timestamps_utc: bool = True,
    commands: Sequence[BeforeCommand] = (),
    rendering: str = "",
) -> CachePlan | None:
    """Return the plan, or None if responses of the endpoint are not cached.

    login: names the parameters that are filled from claims and the client's address. timestamps_utc: whether timestamps
    of requests without a zone are in UTC. commands: those that run before every routine; the values that they use
    become a part of the key. rendering: settings with which the service renders results; another service with the same
    Redis may have others.
    """
    caching = endpoint.options.caching
    if not options.enabled or caching is None or not caching.requested or not may_be_cached(endpoint, options):
        return None
    profile = options.profile(caching.profile)
    parameters = key_parameters(endpoint, options)
    rules = tuple(
        (index, _as_read(rule, endpoint.parameters[index], timestamps_utc))
        for rule in profile.rules
        for index in _indexes(endpoint, rule.parameter)
        if parameters >> index & 1
    )
    prefix = _prefix(endpoint, profile.name, rendering)
    return CachePlan(
        place=profile.place,
        prefix=prefix,
        parameters=parameters,
        seconds=_lifetime(caching.expires, profile, options),
        rules=rules,
        max_rows=(options.max_rows or 0) if is_set(endpoint) else 0,
        tags=caching.tags,
        further_tags=(
            *((profile_tag(profile.name), endpoint_tag(endpoint.name)) if options.operator_tags else ()),
            *((TAGGED,) if caching.tags else ()),
        ),
        hash_from=options.hash_from,
        longest_key=options.hybrid.longest_key if profile.place is Place.HYBRID else None,
        uncounted=characters(prefix) - len(profile.name) - len(endpoint.routine.identity),
        everything=endpoint.passes_through
        and len(filled_parameters(endpoint, login)) == len(endpoint.parameters)
        and profile.parameters is None
        and (caching.parameters is None or not parameters),
        stale=None if endpoint.passes_through else caching.stale,
        per_user=endpoint.options.user_context or endpoint.options.role_from_claim,
        surroundings=endpoint.options.tenant is not None or endpoint.options.time_zone is not None,
        before=() if endpoint.passes_through else tuple(value for item in commands for value in item.values),
    )


def _as_read(rule: Rule, parameter: EndpointParameter, timestamps_utc: bool) -> Rule:
    """Return the rule with its values and, in addition, the texts to which binding converts these values.

    The rule applies to the value that a request sends (caching-36), but is compared with the bound text, which has
    another spelling for timestamps and arrays. timestamps_utc: timestamps without a zone are in UTC.
    """
    reader = Reader.of(parameter.api_name, parameter, timestamps_utc)
    read = (text.casefold() for value in rule.values if value is not None for text in _read(reader, value))
    return replace(rule, values=tuple(dict.fromkeys((*rule.values, *read))))


def _read(reader: Reader, value: str) -> Iterator[str]:
    """Yield the text that binding makes of a value of a rule; nothing if it is no value of the type.

    value: for a parameter of an array type, a JSON array, or elements with commas between them.
    """
    with suppress(ValueError):  # not a value of the type, or invalid JSON
        if not reader.array:
            yield reader.convert_text(value)
        elif value[:1] == "[":
            json.loads(value)
            yield reader.read(value.encode()) or ""
        else:
            yield reader.array_literal([reader.convert_text(element) for element in value.split(",")])


def _lifetime(own: float | None, profile: Profile, options: CacheOptions) -> float | None:
    """Return the lifetime in seconds: that of the comment, else of the profile, else of the hybrid options if the
    profile uses them (caching-7). None: no lifetime is set. own: that of the comment; None: it sets none."""
    if own is not None or profile.seconds is not None:
        return profile.seconds if own is None else own
    hybrid = options.hybrid
    if profile.place is not Place.HYBRID:
        return None
    return hybrid.seconds if hybrid.uses_redis or hybrid.local_seconds is None else hybrid.local_seconds


def may_be_cached(endpoint: Endpoint, options: CacheOptions) -> bool:
    """Return whether results of the endpoint are of a kind that can be cached (caching-15, caching-16)."""
    shape = endpoint.shape
    if endpoint.passes_through:
        return True
    if _only_acts(endpoint):
        return False
    if shape.path is ResultPath.SCALAR:
        return not _is_bytes_set(shape)
    if shape.path is not ResultPath.ROWS or endpoint.options.raw or shape.content_type == BYTES:
        return False
    return not (is_set(endpoint) and options.max_rows == 0)


def _only_acts(endpoint: Endpoint) -> bool:
    """Return whether the purpose of the endpoint is an effect: an upload, a sign-in or sign-out, a job, or a change of
    a table.

    Served from a cache, it would have no effect.
    """
    options = endpoint.options
    if options.upload is not None and options.upload.enabled:
        return True
    return options.login or options.logout or options.job is not None or _changes_a_table(endpoint)


def _changes_a_table(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is a table operation that writes.

    The comment of a table applies to all its operations, of which only those that read can be cached.
    """
    source = endpoint.routine.source
    return isinstance(source, TableOperation) and source.operation.command is not Command.SELECT


def _is_bytes_set(shape: ResultShape) -> bool:
    return shape.is_set and shape.content_type == BYTES


def is_set(endpoint: Endpoint) -> bool:
    """Return whether the response is an array with any number of rows."""
    return endpoint.shape.is_set and not endpoint.options.single


def key_parameters(endpoint: Endpoint, options: CacheOptions) -> int:
    """Return the bit mask of the parameters in the cache key: those that `cached` lists, else those of the profile,
    else all (caching-9).

    Parameters of a query over the result are always in it; parameters that another service fills never are. If another
    service fills all parameters that `cached` lists, all others are in the key. Unknown names in a `cached` line were
    removed when the comment was read.
    """
    caching = endpoint.options.caching
    # Values from other services are requested anew for each call, and follow from the other parameters.
    every = sum(1 << index for index, _ in enumerate(endpoint.parameters) if index not in endpoint.outgoing.filled)
    if caching is None:
        return every
    names = caching.parameters
    if names is None:
        names = options.profile(caching.profile).parameters
    if names is None:
        return every
    listed = every & sum(1 << index for index in {index for name in names for index in _indexes(endpoint, name)})
    # An empty remaining list counts as no list, as does a list of unknown names only.
    of_query = sum(1 << index for index, item in enumerate(endpoint.parameters) if item.of_query)
    return listed | of_query if listed or caching.parameters is None else every


def _indexes(endpoint: Endpoint, name: str) -> Iterator[int]:
    """Yield the indexes of the parameters with this name in the database or in requests. The fields of a composite have
    its database name, so that all of them are yielded. Parameters of a query over the result are left out."""
    for index, item in enumerate(endpoint.parameters):
        if name in (item.db_name, item.api_name) and not item.of_query:
            yield index


def _prefix(endpoint: Endpoint, profile: str, rendering: str) -> bytes:
    """Return the prefix that identifies the endpoint. Each part has its length in front, in two bytes, so that parts
    cannot be confused. profile: name of its cache profile; empty: none. rendering: as for `cache_plan`.
    """
    caching = endpoint.options.caching
    # Without stale intervals, a stale entry must not be taken for a fresh one, for example after a change of the
    # comment.
    stale = "" if caching is None or caching.stale is None else f"{caching.stale.longest:g}"
    version = _version(endpoint, rendering)
    parts = (
        profile,
        endpoint.cached_method,
        endpoint.routine.identity,
        endpoint.options.connection or "",
        stale,
        version,
    )
    return b"".join(len(part).to_bytes(2, "big") + part for part in map(str.encode, parts))


def _version(endpoint: Endpoint, rendering: str) -> str:
    """Return a digest of what determines the response: SQL, comment, names, types and form of the result, and how
    values are rendered. So a response of an earlier definition, or of a service with other settings, is never used.
    """
    try:
        sql = call_sql(endpoint, all_present(endpoint))
    except UncallableError:
        sql = ""
    columns = (f"{item.key!r} {item.column.type_name}" for item in endpoint.shape.columns)
    routine, shape = endpoint.routine, endpoint.shape
    form = (str(shape.named), shape.content_type)
    # Services of earlier versions, which may share the cache, store and expect plain text.
    is_encrypted = endpoint.options.encryption is not None and shape.path is ResultPath.SCALAR
    stored = ("encrypted",) if is_encrypted else ()
    parts = (rendering, routine.version, routine.return_type_name, sql, *form, *columns, *endpoint.annotations, *stored)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def rule_problems(endpoint: Endpoint, options: CacheOptions) -> Iterator[str]:
    """Yield messages about rules of the endpoint's profile that have no effect on the endpoint (caching-37)."""
    caching = endpoint.options.caching
    if not options.enabled or caching is None or caching.profile is None:
        return
    parameters = key_parameters(endpoint, options)
    for rule in options.profile(caching.profile).rules:
        indexes = list(_indexes(endpoint, rule.parameter))
        dropped = f"{endpoint.name}: the rule on {rule.parameter} of cache profile '{caching.profile}' is dropped"
        if not indexes:
            yield f"{dropped}: the routine has no parameter of that name"
        elif not any(parameters >> index & 1 for index in indexes):
            yield f"{dropped}: it is not among the parameters of the cache key"


_SAFE_METHODS = frozenset({"GET", "QUERY"})
"""Methods of endpoints that only read (RFC 9110, 9.2.1)."""


def invalidations(endpoint: Endpoint, options: CacheOptions) -> Iterator[Endpoint]:
    """Yield the one or two endpoints that invalidate cached responses of this one (caching-39).

    The first is at its path with the suffix. The second exists if the last segment of the path is optional: at the path
    without that segment. Both exist for each endpoint with `cached`, even if results of its kind are never cached; they
    then find no entry. There are none if the cache or its invalidation is off, or for endpoints whose purpose is an
    effect. Parameters keep their place in query, path or body. Schedules and event streams remain those of the cached
    endpoint. The method is POST in place of GET and QUERY, as an
    invalidation changes state; with `InvalidateCacheUseEndpointMethod` it is that of the cached endpoint.
    """
    caching = endpoint.options.caching
    if (
        options.suffix is None
        or not options.enabled
        or caching is None
        or not caching.requested
        or _only_acts(endpoint)
    ):
        return
    suffix = options.suffix.strip("/").lower()
    safe = endpoint.method in _SAFE_METHODS
    method = "POST" if safe and not options.invalidate_by_endpoint_method else endpoint.method
    invalidating = replace(endpoint.options, invalidates=endpoint.method, schedule=None, events=None)
    path = endpoint.path.rstrip("/")
    paths = [path.replace("?}", "}")]
    if path.endswith("?}"):
        # Only the last segment may be optional, and it is not the last any more.
        paths.append(path.rpartition("/")[0])
    for item in paths:
        yield replace(endpoint, method=method, path=f"{item}/{suffix}", options=invalidating)
