"""Sessions of operators, and what the schema `rowcall` stores about a user's sign-in: list, revoke and end them.

Sessions of users are not listed: they are cookies and tokens, which only a database of the operator may know
(`Auth:SessionCheckCommand`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.console.actions.action import Action, Result, Values, uuid_of
from rowcall.service.console.database import Database
from rowcall.service.console.sessions import Sessions

_TOKENS = "select purpose, tenant, created, expires, used from rowcall.list_tokens_of_tenants(%s) limit 200"
_DEVICES = "select id::text, description, created, expires from rowcall.list_devices(%s)"


def sign_ins(sessions: Sessions, ring: KeyRing, database: Database, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the sessions of operators and the keys of the key ring; with `subject` also one-time tokens and remembered
    devices of this user. None of it is secret. If a part cannot be read, the reason is in `unavailable`.

    Raises `Problem`: 400 for an invalid subject, 503 if the database cannot be reached.
    """
    report: dict[str, Any] = {
        "operators": [
            {
                "id": item.id,
                "operator": item.operator,
                "address": item.address,
                "began": item.began,
                "expires": item.expires,
            }
            for item in sessions.list_sessions()
        ],
        "keys": [
            {"id": key.name, "created": key.created, "activated": key.activated, "expires": key.expires}
            for key in ring.keys
        ],
    }
    subject = query.get("subject", "")
    if not subject:
        return {**report, "unavailable": {}}
    if "\0" in subject:
        raise Problem(400, "subject: a NUL is not possible")
    return {**report, **database.about(subject, {"tokens": _TOKENS, "devices": _DEVICES})}


def account_actions(sessions: Sessions, database: Database) -> Iterator[Action]:
    """Yield the actions on sessions of operators and on sign-ins of users."""
    end = partial(_end_session, sessions)
    yield Action("end-session", "Ends a session of an operator.", end, ("id",))
    meaning = "Revokes unused one-time tokens of a user, of one purpose or all, of one tenant or all."
    yield Action("revoke-tokens", meaning, partial(_revoke_tokens, database), ("subject",), ("purpose", "tenant"))
    meaning = "Revokes a remembered device of a user, or all: the next sign-in requires the second factor."
    yield Action("revoke-devices", meaning, partial(_revoke_devices, database), ("subject",), ("id",))


def _end_session(sessions: Sessions, values: Values) -> Result:
    if not sessions.end_named(values["id"]):
        raise Problem(404, "there is no such session (any more)")
    return {"ended": values["id"]}


def _revoke_tokens(database: Database, values: Values) -> Result:
    named = [values["subject"], values.get("purpose") or None]
    if tenant := values.get("tenant"):
        count = database.change("select rowcall.revoke_tokens(%s, %s, %s)", *named, tenant)
    else:
        count = database.change("select rowcall.revoke_tokens(%s, %s)", *named)
    return {"revoked": count}


def _revoke_devices(database: Database, values: Values) -> Result:
    device = uuid_of(values, "id") if values.get("id") else None
    count = database.change("select rowcall.revoke_devices(%s, %s::uuid)", values["subject"], device)
    return {"revoked": count}
