"""Annotations about access and the audit trail: authorize, allow_anonymous, second_factor, audit_trail, cors."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Draft, Line, first_word, keyword_form, switch
from rowcall.core.text.interval import parse_interval

_QUOTES = "\"'"


def _authorize(draft: Draft, line: Line) -> None:
    """Require authorization, with the roles and the time limit of the line. If the line has no roles, or no limit,
    those of earlier lines apply. Roles keep their case.

    Warn of an earlier `allow_anonymous`, except inside of a `for` block, and of quotation marks around roles.
    """
    draft.set(requires_authorization=True)
    if not draft.block and (earlier := draft.used.get("allow_anonymous")) is not None:
        draft.warn(line, f"`{line.shown}` cancels the earlier line `{earlier}`; keep one of them")
    roles, fresh = _with_limit(line.arguments)
    if fresh is not None:
        draft.set(fresh=fresh)
    if roles:
        draft.set(roles=roles)
        for role in roles:
            if role[0] in _QUOTES or role[-1] in _QUOTES:
                draft.warn(line, f"the quotation marks are part of the role's name {role}; write roles without them")


def _with_limit(words: tuple[str, ...]) -> tuple[tuple[str, ...], float | None]:
    """Split the arguments of `authorize` into the roles and the seconds of a limit such as `within 5 minutes` at their
    end; None: they have no such limit."""
    for index, word in enumerate(words):
        if word.lower() == "within" and (seconds := parse_interval(" ".join(words[index + 1 :]))) is not None:
            return words[:index], seconds
    return words, None


def _allow_anonymous(draft: Draft, line: Line) -> None:
    """Allow anonymous callers. Roles, time limit and second factor of earlier lines no longer apply. Warn about an
    earlier `authorize`, except inside of a `for` block."""
    draft.set(requires_authorization=False, roles=(), fresh=None, second_factor=None)
    if not draft.block and (earlier := draft.used.get("authorize")) is not None:
        draft.warn(line, f"`{line.shown}` cancels the earlier line `{earlier}`; keep one of them")


def _second_factor(draft: Draft, line: Line) -> None:
    """Set whether a second factor is required: yes for `on` or no argument, no for `off`, with which a login does not
    ask for a second factor either. Raises `BadValueError` for a word that `switch` does not know."""
    _assign_second_factor(draft, line.arguments[0] if line.arguments else "on")


def _assign_second_factor(draft: Draft, value: str) -> None:
    draft.set(second_factor=switch(value))


def _assign_cors(draft: Draft, value: str) -> None:
    draft.set(cors=switch(value))


def _audit(draft: Draft, line: Line) -> None:
    _assign_audit(draft, line.arguments[0] if line.arguments else "on")


def _assign_audit(draft: Draft, value: str) -> None:
    draft.set(audit=switch(value))


ANNOTATIONS = (
    Annotation(
        name="authorize",
        aliases=("authorize", "authorized", "requires_authorization"),
        syntax="authorize [<role> | user:<id> | name:<name>, ...] [within <interval>]",
        description="Callers have to be signed in, and to have one of the roles if any are listed. `user:41` and "
        "`name:kiri` admit a single user, by the claim of the id or of the name; a bare word is always a role. "
        "`within 5 minutes`: callers have signed in no longer ago than this (`NoteSignInTime`).",
        apply=_authorize,
    ),
    Annotation(
        name="allow_anonymous",
        aliases=("allow_anonymous", "anonymous", "allow_anon", "anon"),
        syntax="allow_anonymous",
        description="Callers need not be signed in.",
        apply=_allow_anonymous,
    ),
    Annotation(
        name="second_factor",
        aliases=("second_factor",),
        syntax="second_factor [on|off]",
        description="Callers have to be signed in, and to have proved a second factor (`Auth:SecondFactor`). On a "
        "login, `off` does not ask users who have one for it.",
        apply=_second_factor,
        assign=_assign_second_factor,
    ),
    Annotation(
        name="audit_trail",
        aliases=("audit_trail",),
        syntax="audit_trail [on|off]",
        description="Whether calls of the endpoint are recorded in the audit trail, if `Service:AuditTrail` is on.",
        apply=_audit,
        assign=_assign_audit,
    ),
    Annotation(
        name="cors",
        aliases=("cors",),
        syntax="cors on|off",
        description="`off`: pages of other origins may not call this endpoint, even if `Cors` in the configuration "
        "allows them.",
        apply=keyword_form(_assign_cors, first_word),
        assign=_assign_cors,
        minimum_words=2,
    ),
)
