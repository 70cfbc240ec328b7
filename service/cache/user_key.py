"""The part of a cache key that depends on the caller: the claims that its routine can read in its session."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from weakref import WeakKeyDictionary

from rowcall.core.auth.claims import User
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext

ANONYMOUS = b"\0"


def claims_of(services: Services) -> Callable[[RequestContext], bytes]:
    """Return the function for a digest of the claims that are written to session variables.

    The client address is written beside them and is not included, because it would separate all clients from each
    other.
    """
    mapping = services.options.auth.mapping
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
