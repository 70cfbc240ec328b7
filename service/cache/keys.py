"""Request → key of its answer, None where it is too long to be one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from rowcall.core.auth.parameter_injection import hashed_parameters
from rowcall.core.cache.key import characters, hashed
from rowcall.core.cache.plan import CachePlan
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.ext.driver.cache_fast_path import encode_key
from rowcall.service.cache.user_key import claims_of
from rowcall.service.pipeline.services import Services
from rowcall.service.request.before_routine import value_of
from rowcall.service.request_context.request_context import RequestContext, Step

KeyOf = Callable[[RequestContext], bytes | None]
Part = Callable[[RequestContext], bytes]


def key_of(endpoint: Endpoint, plan: CachePlan, services: Services) -> KeyOf:
    """To be asked when every parameter has its value, and for `reads_body` the body is there."""
    prefix, expected = plan.prefix, plan.parameters

    def key(context: RequestContext) -> bytes:
        return encode_key(prefix, context.mask, context.arguments, expected)

    parts: list[Part] = []
    if endpoint.options.proxy is not None:
        parts.append(_credentials(services))
    if plan.everything:
        parts.append(_request)
    if plan.per_user:
        parts.append(claims_of(services))
    if plan.before:
        parts.append(_given_before(plan, services))
    values = plain_values if changes_values(endpoint) else None

    def key_with_parts(context: RequestContext) -> bytes:
        arguments = context.arguments if values is None else values(context)
        whole = prefix + b"".join([part(context) for part in parts])
        return encode_key(whole, context.mask, arguments, expected)

    made = key_with_parts if parts or values is not None else key
    if plan.hash_from is None and plan.longest_key is None:
        return made
    hash_from = float("inf") if plan.hash_from is None else plan.hash_from
    longest = float("inf") if plan.longest_key is None else plan.longest_key
    uncounted = plan.uncounted

    def bounded(context: RequestContext) -> bytes | None:
        result = made(context)
        length = characters(result) - uncounted
        if length > hash_from:
            result, length = hashed(result), 64
        return None if length > longest else result

    return bounded


def has_plain_key(endpoint: Endpoint, plan: CachePlan) -> bool:
    """Prefix and values, and nothing else."""
    if endpoint.options.proxy is not None or plan.per_user or plan.before or changes_values(endpoint):
        return False
    return plan.hash_from is None and plan.longest_key is None


def reads_body(endpoint: Endpoint, plan: CachePlan) -> bool:
    """The body is part of the key."""
    return plan.everything and endpoint.cached_method not in ("GET", "HEAD")


def _credentials(services: Services) -> Part:
    """The other service sees them, and what it tells one caller is not for all. As a hash: keys are kept and logged."""
    api_keys = services.options.auth.api_keys
    names = ["authorization", *(() if api_keys is None else (api_keys.header,))]

    def credentials(context: RequestContext) -> bytes:
        headers = context.scope.headers
        response = joined(*(headers.get(name) or "" for name in names), "; ".join(headers.get_all("cookie")))
        return hashlib.sha256(response).digest()

    return credentials


def _given_before(plan: CachePlan, services: Services) -> Part:
    """As a hash: it may be secret, and the key is kept."""
    sources = [value_of(item, services) for item in plan.before]

    def given(context: RequestContext) -> bytes:
        values = [source(context) for source in sources]
        whole = b"".join(b"-" if value is None else b"%d:%b" % (len(value), value) for value in values)
        return hashlib.sha256(whole).digest()

    return given


def _request(context: RequestContext) -> bytes:
    """All else that decides what the other service answers. The path stands in what its segments are: that of the
    endpoint that forgets is another one."""
    body = hashlib.sha256(context.body or b"").hexdigest()
    segments = (f"{name}={value}" for name, value in sorted(context.values.items()))
    return joined(context.scope.query_string, body, *segments)


def joined(*texts: str) -> bytes:
    parts = (text.encode(errors="surrogateescape") for text in texts)
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)


def changes_values(endpoint: Endpoint) -> bool:
    """Values reach the database as other texts than they were sent as, and as others each time."""
    return endpoint.options.encryption is not None or bool(hashed_parameters(endpoint))


def record_values(endpoint: Endpoint, services: Services) -> Step | None:
    """The step in front of those that change values: the key is made of what was sent (caching-11)."""
    caching = endpoint.options.caching
    if not services.options.cache.enabled or caching is None or not caching.wanted or not changes_values(endpoint):
        return None

    def note(context: RequestContext) -> None:
        context.lease = (context.mask, tuple(context.arguments))

    return note


def plain_values(context: RequestContext) -> list[bytes | None]:
    """What was sent, as hashes: it is secret, and the key is kept. What has been filled since then is as it is."""
    mask, sent = context.lease
    context.lease = None
    values: list[bytes | None] = []
    for index, text in zip(_indexes(context.mask), context.arguments, strict=True):
        plain = sent[(mask & ((1 << index) - 1)).bit_count()] if mask >> index & 1 else text
        values.append(None if plain is None else hashlib.sha256(plain).digest())
    return values


def _indexes(mask: int) -> list[int]:
    return [index for index in range(mask.bit_length()) if mask >> index & 1]
