"""Annotations that say who may call: authorize, allow_anonymous."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Draft, Line, switch


def _authorize(draft: Draft, line: Line) -> None:
    """Roles keep their case. A bare line keeps earlier roles: it can only make access stricter."""
    draft.set(requires_authorization=True)
    if line.arguments:
        draft.set(roles=line.arguments)


def _allow_anonymous(draft: Draft, line: Line) -> None:
    draft.set(requires_authorization=False)


def _cors(draft: Draft, line: Line) -> None:
    _assign_cors(draft, line.arguments[0])


def _assign_cors(draft: Draft, value: str) -> None:
    draft.set(cors=switch(value))


ANNOTATIONS = (
    Annotation(
        name="authorize",
        aliases=("authorize", "authorized", "requires_authorization"),
        syntax="authorize [<role> | user:<id> | name:<name>, ...]",
        description="Callers have to be signed in, and to have one of the roles if any are listed. `user:41` and "
        "`name:kiri` let in a single user, by the claim of the id or of the name; a bare word is a role, nothing else.",
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
        name="cors",
        aliases=("cors",),
        syntax="cors on|off",
        description="`off`: pages of other origins are kept out here, whatever `Cors` in the configuration allows.",
        apply=_cors,
        assign=_assign_cors,
        minimum_words=2,
    ),
)
