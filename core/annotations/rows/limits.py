"""Annotations that limit access besides sign-in: rate_limiter and HTTP Basic (access-6, limits-6)."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Draft, Line, keyword_form, rest_of
from rowcall.core.endpoint.capabilities import BasicAuth


def _rate_limiter(draft: Draft, line: Line) -> None:
    """Set the rate limiter policy. Its name may contain blanks; commas become blanks."""
    draft.set(rate_limiter=line.joined)


def _assign_rate_limiter(draft: Draft, value: str) -> None:
    draft.set(rate_limiter=value or None)


def _basic(draft: Draft, line: Line) -> None:
    """Require HTTP Basic, and add the user of the line, if it has name and password; otherwise warn. Further words are
    ignored."""
    _add_user(draft, line.arguments)
    if len(line.arguments) < 2:
        other_users = "the users of other lines and of Service:AuthenticationOptions:BasicAuth"
        draft.warn(line, f"name and password are missing: HTTP Basic is required, with {other_users}")


def _assign_basic(draft: Draft, value: str) -> None:
    """Require HTTP Basic, and add a user if there are two words: name and password. From three words on, the first one
    is ignored: the established system expects a word there (access-6)."""
    words = tuple(word for word in value.replace(",", " ").split(" ") if word)
    _add_user(draft, words if len(words) < 3 else words[1:])


def _add_user(draft: Draft, words: tuple[str, ...]) -> None:
    """Require HTTP Basic, and add a user if there are at least two words: name and password. Further words, and a
    single word, are ignored."""
    users = draft.get("basic_auth", BasicAuth()).users
    added = (*users, (words[0], words[1])) if len(words) >= 2 else users
    draft.change_fields("basic_auth", BasicAuth(), enabled=True, users=added)


def _realm(draft: Draft, line: Line) -> None:
    """Require HTTP Basic, and set its realm to the first word. Further words give a warning."""
    _assign_realm(draft, line.arguments[0])
    if len(line.arguments) > 1:
        draft.warn(line, f"the realm is {line.arguments[0]}, without the rest; basic_auth_realm = … may have blanks")


def _assign_realm(draft: Draft, value: str) -> None:
    draft.change_fields("basic_auth", BasicAuth(), enabled=True, realm=value or None)


def _assign_command(draft: Draft, value: str) -> None:
    draft.change_fields("basic_auth", BasicAuth(), enabled=True, command=value or None)


ANNOTATIONS = (
    Annotation(
        name="rate_limiter",
        aliases=("rate_limiter_policy_name", "rate_limiter_policy", "rate_limiter"),
        syntax="rate_limiter <policy>",
        description="Limits how often the endpoint is called, with a policy of the configuration.",
        apply=_rate_limiter,
        assign=_assign_rate_limiter,
        minimum_words=2,
    ),
    Annotation(
        name="basic_auth",
        aliases=("basic_authentication", "basic_auth"),
        syntax="basic_auth [<user> <password>]",
        description="Requires HTTP Basic. Each such line adds a user with a password or its hash.",
        apply=_basic,
        assign=_assign_basic,
        secret=True,
    ),
    Annotation(
        name="basic_auth_realm",
        aliases=("basic_authentication_realm", "basic_auth_realm", "realm"),
        syntax="basic_auth_realm <word>",
        description="Requires HTTP Basic and sets its realm; in the form `basic_auth_realm = <text>` it may contain "
        "blanks.",
        apply=_realm,
        assign=_assign_realm,
        minimum_words=2,
    ),
    Annotation(
        name="basic_auth_command",
        aliases=("basic_authentication_command", "basic_auth_command", "challenge_command"),
        syntax="basic_auth_command <SQL>",
        description="Requires HTTP Basic and checks credentials with this SQL: $1 user, $2 password, $3 whether the "
        "password matches, $4 realm, $5 path. The columns of its row are the claims of the caller.",
        apply=keyword_form(_assign_command, rest_of),
        assign=_assign_command,
        minimum_words=2,
    ),
)
