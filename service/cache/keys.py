"""Functions that compute the cache key of a request. The key is None if it is too long for the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary

from rowcall.core.auth.claims import User
from rowcall.core.auth.parameter_injection import hashed_parameters
from rowcall.core.cache.key import characters, hash_key
from rowcall.core.cache.plan import CachePlan
from rowcall.core.endpoint.capabilities import Tenant, TimeZone
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.protection.encrypted_parameters import encrypted_parameters
from rowcall.ext.driver.cache_fast_path import encode_key
from rowcall.service.pipeline.services import Services
from rowcall.service.request.before_routine import value_of
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.surroundings import tenant_of, zone_of
from rowcall.service.response.headers import argument_text

KeyOf = Callable[[RequestContext], bytes | None]
"""Returns the key of a request; None: it is too long, so the response is not cached."""
Part = Callable[[RequestContext], bytes]
"""Returns a part of the key of a request."""


ANONYMOUS = b"\0"
"""Key part of anonymous callers."""


def key_of(endpoint: Endpoint, plan: CachePlan, services: Services) -> KeyOf:
    """Return the function that computes the key of a request. It may be called when all parameters have their values
    and, if `reads_body`, the body is read. If values are encrypted or hashed (`changes_values`), the step of
    `record_values` must have run before."""
    prefix, key_mask = plan.prefix, plan.parameters

    def key(context: RequestContext) -> bytes:
        return encode_key(prefix, context.mask, context.arguments, key_mask)

    parts: list[Part] = []
    if endpoint.options.proxy is not None:
        parts.append(_credentials(services))
    if plan.everything:
        parts.append(_request)
    if plan.per_user:
        parts.append(claims_of(services))
    if plan.before:
        parts.append(_values_before_routine(plan, services))
    if plan.surroundings:
        parts.append(partial(_tenant_and_zone, endpoint.options.tenant, endpoint.options.time_zone))
    values = recorded_digests if changes_values(endpoint) else None

    def key_with_parts(context: RequestContext) -> bytes:
        arguments = context.arguments if values is None else values(context)
        whole = prefix + b"".join([part(context) for part in parts])
        return encode_key(whole, context.mask, arguments, key_mask)

    compute_key = key_with_parts if parts or values is not None else key
    if plan.hash_from is None and plan.longest_key is None:
        return compute_key
    hash_from = float("inf") if plan.hash_from is None else plan.hash_from
    longest = float("inf") if plan.longest_key is None else plan.longest_key
    uncounted = plan.uncounted

    def compute_bounded_key(context: RequestContext) -> bytes | None:
        result = compute_key(context)
        length = characters(result) - uncounted
        if length > hash_from:
            result, length = hash_key(result), 64
        return None if length > longest else result

    return compute_bounded_key


def has_plain_key(endpoint: Endpoint, plan: CachePlan) -> bool:
    """Return whether the key consists of prefix and parameter values only, and is neither hashed nor limited in
    length."""
    depends_on_request = plan.per_user or plan.surroundings or bool(plan.before)
    if endpoint.options.proxy is not None or depends_on_request or changes_values(endpoint):
        return False
    return plan.hash_from is None and plan.longest_key is None


def reads_body(endpoint: Endpoint, plan: CachePlan) -> bool:
    """Whether the body is part of the key."""
    return plan.everything and endpoint.cached_method not in ("GET", "HEAD")


def _credentials(services: Services) -> Part:
    """Return the function for the key part of the credentials, which a proxied service sees, so that its responses may
    differ by caller.

    It is a digest, as keys are stored and logged.
    """
    api_keys = services.options.auth.api_keys
    names = ["authorization", *(() if api_keys is None else (api_keys.header,))]

    def credentials(context: RequestContext) -> bytes:
        headers = context.scope.headers
        text = join_with_lengths(*(headers.get(name) or "" for name in names), cookie_header(headers))
        return hashlib.sha256(text).digest()

    return credentials


def _values_before_routine(plan: CachePlan, services: Services) -> Part:
    """Return the function for the key part of the values that `BeforeRoutineCommands` receive. It is a digest, as the
    values may be secret and keys are stored.
    """
    sources = [value_of(item, services) for item in plan.before]

    def digest_values(context: RequestContext) -> bytes:
        values = [source(context) for source in sources]
        whole = b"".join(b"-" if value is None else b"%d:%b" % (len(value), value) for value in values)
        return hashlib.sha256(whole).digest()

    return digest_values


def _tenant_and_zone(tenant: Tenant | None, zone: TimeZone | None, context: RequestContext) -> bytes:
    """Return the key part for tenant and time zone. tenant, zone: how they are determined; None: the endpoint has
    none.
    """
    return join_with_lengths(tenant_of(tenant, context) or "", zone_of(zone, context) or "")


def _request(context: RequestContext) -> bytes:
    """Return the key part for query string, body and path values, which a proxied service receives.

    The key has the path values instead of the path, because the invalidation endpoint has another path.
    """
    body = hashlib.sha256(context.body or b"").hexdigest()
    segments = (f"{name}={value}" for name, value in sorted(context.values.items()))
    return join_with_lengths(context.scope.query_string, body, *segments)


def join_with_lengths(*texts: str) -> bytes:
    """Join texts, each with its length, so that different texts never give equal bytes."""
    parts = (text.encode(errors="surrogateescape") for text in texts)
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)


def changes_values(endpoint: Endpoint) -> bool:
    """Return whether values are encrypted or hashed before they reach the database, possibly differently each time."""
    return endpoint.options.encryption is not None or bool(hashed_parameters(endpoint))


def record_values(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that records the arguments before other steps encrypt or hash them, as the cache key is made of
    the values sent (caching-11). None: nothing changes values, or the endpoint is not cached.
    """
    caching = endpoint.options.caching
    if not services.options.cache.enabled or caching is None or not caching.requested or not changes_values(endpoint):
        return None

    def record(context: RequestContext) -> None:
        context.sent_values = (context.mask, tuple(context.arguments))

    return record


def recorded_digests(context: RequestContext) -> list[bytes | None]:
    """Return the values that `record_values` has recorded, as digests, because they are secret and the key is stored.
    Values that were injected after the recording are returned as digests too. Raises RuntimeError if nothing was
    recorded."""
    if context.sent_values is None:
        raise RuntimeError("the values were not recorded before they were changed")
    mask, sent = context.sent_values
    values: list[bytes | None] = []
    for index, text in zip(_indexes(context.mask), context.arguments, strict=True):
        plain = sent[(mask & ((1 << index) - 1)).bit_count()] if mask >> index & 1 else text
        values.append(None if plain is None else hashlib.sha256(plain).digest())
    return values


def text_reader(endpoint: Endpoint) -> Callable[[RequestContext, int], str | None]:
    """Return the function for the text of an argument in rules and tags, with the parameters of `argument_text`. For a
    parameter that `encrypt` applies to, it returns the value before encryption, as the encrypted text is different each
    time (caching-36)."""
    encrypted = encrypted_parameters(endpoint)
    if not encrypted:
        return argument_text

    def read(context: RequestContext, index: int) -> str | None:
        mask, sent = context.sent_values or (0, ())
        if index not in encrypted or not mask >> index & 1:
            return argument_text(context, index)
        value = sent[(mask & ((1 << index) - 1)).bit_count()]
        return None if value is None else value.decode(errors="replace")

    return read


def _indexes(mask: int) -> list[int]:
    """Return the positions of the bits that are set, in ascending order."""
    return [index for index in range(mask.bit_length()) if mask >> index & 1]


def claims_of(services: Services) -> Callable[[RequestContext], bytes]:
    """Return the function that computes a digest of the caller's claims that are written to session variables or
    determine the database role; for an anonymous caller, it returns `ANONYMOUS`.

    The client address, which is written to a session variable too, is not included, because no two clients would share
    a response.
    """
    mapping = services.options.auth.login
    role = services.options.auth.database_roles.claim
    digests: WeakKeyDictionary[User, bytes] = WeakKeyDictionary()

    def digest(user: User) -> bytes:
        whole = hashlib.sha256()
        values = [user.texts.get(claim) for _key, claim in mapping.context]
        if mapping.json_key is not None:
            values.append(user.json)
        # All of them, as the first one that is allowed is used.
        values += [value.encode() for kind, value in user.claims if kind == role]
        for value in values:
            whole.update(b"-" if value is None else b"%d:%b" % (len(value), value))
        return whole.digest()

    def claims(context: RequestContext) -> bytes:
        user: User | None = context.user
        if user is None:
            return ANONYMOUS
        result = digests.get(user)
        if result is None:
            result = digests[user] = digest(user)
        return result

    return claims
