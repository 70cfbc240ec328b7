"""Annotations about server-sent events (events-1 to events-3)."""

from __future__ import annotations

from rowcall.core.annotations.declaration import (
    Annotation,
    Apply,
    Assign,
    BadValueError,
    Draft,
    Line,
    first_word,
    keyword_form,
    switch,
    true_or_false,
)
from rowcall.core.endpoint.capabilities import Audience, Events, NoticeLevel

_LEVELS = {level.value.lower(): level for level in NoticeLevel}
_SCOPES = {scope.value: scope for scope in Audience}


def _level(word: str) -> NoticeLevel:
    """Return the notice level of a word, in any case. Raises `BadValueError`."""
    level = _LEVELS.get(word.lower())
    if level is None:
        raise BadValueError(f"'{word}' is none of {', '.join(_LEVELS)}")
    return level


def _events(**roles: bool) -> Apply:
    """Return a function that applies `sse [path] [on level]`, `sse_publish` or `sse_subscribe`.

    The path is lower-cased. An unknown level gives a warning and leaves the level unchanged; the rest of the line
    applies. Surplus words give a warning. roles: the fields of `Events` that the annotation turns on.
    """

    def apply(draft: Draft, line: Line) -> None:
        words = tuple(word.lower() for word in line.arguments)
        if len(words) >= 2 and words[-2] == "on":
            words, level = words[:-2], words[-1]
            try:
                draft.change_fields("events", Events(), level=_level(level))
            except BadValueError as error:
                # The level keeps its previous value (events-1 to events-3); the rest of the line applies.
                draft.warn(line, str(error))
        draft.change_fields("events", Events(), **roles)
        subscribes = "subscribe" in roles
        if subscribes:
            _set_path(draft, words[0] if words else None)
        if unread := words[int(subscribes) :]:
            draft.warn(line, f"'{' '.join(unread)}' is not read")

    return apply


def _set_path(draft: Draft, path: str | None) -> None:
    """Set the path segment. Without one, it is the name, in lower case, of the notice level that this line or an
    earlier one has set, or None (events-1 to events-3)."""
    level = draft.get("events", Events()).level
    draft.change_fields("events", Events(), path=path or (level and level.value.lower()))


def _assigned_events(*roles: str) -> Assign:
    """Return a function that applies `sse = true|false|<path>`. The case of the path is preserved. For a text with
    blanks, it raises `BadValueError`.

    roles: the fields of `Events` that the annotation sets.
    """

    def assign(draft: Draft, value: str) -> None:
        if " " in value:
            raise BadValueError(f"'{value}' is neither true nor false nor a path")
        on = value.lower() != "false"
        draft.change_fields("events", Events(), **dict.fromkeys(roles, on))
        if on and "subscribe" in roles:
            _set_path(draft, None if value.lower() == "true" else value)

    return assign


def _assign_publish(draft: Draft, value: str) -> None:
    draft.change_fields("events", Events(), publish=true_or_false(value))


def _assign_level(draft: Draft, value: str) -> None:
    draft.change_fields("events", Events(), level=_level(value))


def _scope(draft: Draft, line: Line) -> None:
    _set_scope(draft, line.arguments)


def _assign_scope(draft: Draft, value: str) -> None:
    _set_scope(draft, tuple(word for word in value.replace(",", " ").split(" ") if word))


def _set_scope(draft: Draft, words: tuple[str, ...]) -> None:
    """Set the recipients: a scope, and with `authorize` the roles and users behind it. Raises `BadValueError` for
    another first word."""
    scope = _SCOPES.get(words[0].lower()) if words else None
    if scope is None:
        raise BadValueError(f"the scope is none of {', '.join(_SCOPES)}")
    draft.change_fields("events", Events(), scope=scope, names=words[1:] if scope is Audience.AUTHORIZE else ())


def _set_after_commit(draft: Draft, line: Line) -> None:
    draft.change_fields("events", Events(), after_commit=True)


def _assign_after_commit(draft: Draft, value: str) -> None:
    draft.change_fields("events", Events(), after_commit=switch(value))


def _set_last_value(draft: Draft, line: Line) -> None:
    draft.change_fields("events", Events(), last_value=True)


def _assign_last_value(draft: Draft, value: str) -> None:
    draft.change_fields("events", Events(), last_value=switch(value))


def _listen(draft: Draft, line: Line) -> None:
    """Subscribe to a channel of PostgreSQL. The path segment of the stream defaults to the name of the channel.

    Raises `BadValueError` for surplus words.
    """
    channel, *segment = line.arguments
    if len(segment) > 1:
        raise BadValueError("expected: sse_listen <channel> [<segment>]")
    path = segment[0] if segment else channel
    draft.change_fields("events", Events(), subscribe=True, channel=channel, path=path)


def _filter(draft: Draft, line: Line) -> None:
    """Add a filter: a member of the payload, and the claim that must have its value; the claim has the same name unless
    it is named. Raises `BadValueError` for surplus words."""
    if len(line.arguments) > 2:
        raise BadValueError("expected: sse_filter <member of the payload> [<claim>]")
    member, claim = line.arguments[0], line.arguments[-1]
    filters = draft.get("events", Events()).filters
    draft.change_fields("events", Events(), filters=(*filters, (member, claim)))


ANNOTATIONS = (
    Annotation(
        name="sse",
        aliases=("sse", "sse_path", "sse_events_path"),
        syntax="sse [<segment>] [on info|notice|warning]",
        description="Sends notices that the routine raises as server-sent events. Clients subscribe at the path of "
        "the endpoint, followed by this segment.",
        apply=_events(publish=True, subscribe=True),
        assign=_assigned_events("publish", "subscribe"),
    ),
    Annotation(
        name="sse_publish",
        aliases=("sse_publish", "sse_events_publish"),
        syntax="sse_publish [on info|notice|warning]",
        description="Sends notices that the routine raises as server-sent events, without a path for subscribers.",
        apply=_events(publish=True),
        assign=_assign_publish,
    ),
    Annotation(
        name="sse_subscribe",
        aliases=("sse_subscribe", "sse_events_subscribe"),
        syntax="sse_subscribe [<segment>] [on info|notice|warning]",
        description="Adds only a path where clients subscribe to events; notices of the routine are not sent.",
        apply=_events(subscribe=True),
        assign=_assigned_events("subscribe"),
    ),
    Annotation(
        name="sse_level",
        aliases=("sse_level", "sse_events_level"),
        syntax="sse_level info|notice|warning",
        description="Severity of the notices that become events. Other severities are not sent.",
        apply=keyword_form(_assign_level, first_word),
        assign=_assign_level,
        minimum_words=2,
    ),
    Annotation(
        name="sse_scope",
        aliases=("sse_scope", "sse_events_scope"),
        syntax="sse_scope matching|all|authorize [<role> | user:<id> | name:<name>, ...]",
        description="Recipients of the events: all subscribers, callers who may call the endpoint, or signed-in users "
        "with one of these roles, ids or names, written as for `authorize`.",
        apply=_scope,
        assign=_assign_scope,
        minimum_words=2,
    ),
    Annotation(
        name="sse_after_commit",
        aliases=("sse_after_commit",),
        syntax="sse_after_commit",
        description="Sends events after their transaction has committed, and not if it rolls back.",
        apply=_set_after_commit,
        assign=_assign_after_commit,
    ),
    Annotation(
        name="sse_last_value",
        aliases=("sse_last_value",),
        syntax="sse_last_value",
        description="A stream of this endpoint begins with the latest event that its reader may receive.",
        apply=_set_last_value,
        assign=_assign_last_value,
    ),
    Annotation(
        name="sse_listen",
        aliases=("sse_listen",),
        syntax="sse_listen <channel> [<segment>]",
        description="Adds a stream of the notifications on a channel of PostgreSQL, for callers who may call the "
        "endpoint.",
        apply=_listen,
        minimum_words=2,
    ),
    Annotation(
        name="sse_filter",
        aliases=("sse_filter",),
        syntax="sse_filter <member> [<claim>]",
        description="For channels whose payload is a JSON object: a reader receives the notifications in which this "
        "member has the value of that claim. Of several filters, all must match.",
        apply=_filter,
        minimum_words=2,
    ),
)
