"""What of a caller belongs to the key of an answer: the claims that its routine can read in its session."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from weakref import WeakKeyDictionary

from rowcall.core.auth.claims import User
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext

ANONYMOUS = b"\0"


def claims_of(services: Services) -> Callable[[RequestContext], bytes]:
    """The claims that the configuration has written to session variables, as one text of fixed length.

    The client's address is written beside them and is no part of it: it would tell every client from every other.
    """
    mapping = services.options.auth.mapping
    role = services.options.auth.database_roles.claim
    known: WeakKeyDictionary[User, bytes] = WeakKeyDictionary()

    def digest(user: User) -> bytes:
        whole = hashlib.sha256()
        values = [user.texts.get(claim) for _key, claim in mapping.context]
        if mapping.json_key is not None:
            values.append(user.json)
        # All of them: the first that is allowed counts.
        values += [value.encode() for kind, value in user.claims if kind == role]
        for value in values:
            whole.update(b"-" if value is None else b"%d:%b" % (len(value), value))
        return whole.digest()

    def claims(context: RequestContext) -> bytes:
        user: User | None = context.user
        if user is None:
            return ANONYMOUS
        response = known.get(user)
        if response is None:
            response = known[user] = digest(user)
        return response

    return claims
