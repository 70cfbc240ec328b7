"""Annotations about the identity of the caller: login, logout, impersonation, claims in routines, parameter_hash."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, assigned_flag, flag
from rowcall.core.endpoint.capabilities import Impersonation


def _impersonate(draft: Draft, line: Line) -> None:
    draft.set(login=True, impersonation=Impersonation.BEGINS)


def _end_impersonation(draft: Draft, line: Line) -> None:
    draft.set(login=True, impersonation=Impersonation.ENDS)


def _refuse_impersonation(draft: Draft, line: Line) -> None:
    draft.set(impersonation=Impersonation.REFUSED)


def _parameter_hash(draft: Draft, line: Line) -> None:
    """Replace the value of one parameter by its hash. Raises `BadValueError` for further words."""
    if len(line.arguments) > 1:
        raise BadValueError(f"one parameter is expected; write a line `{line.keyword} <parameter>` for each")
    _assign_parameter_hash(draft, line.arguments[0])


def _assign_parameter_hash(draft: Draft, value: str) -> None:
    if value:
        add_hash(draft, value, value)


def add_hash(draft: Draft, target: str, source: str) -> None:
    """Replace the value of parameter `target` by the hash of the value of `source`.

    Both are database names or names in requests, in any case. `core.auth.parameter_injection` resolves them after the
    endpoint has been built.
    """
    hashes: tuple[tuple[str, str], ...] = draft.get("hashes", ())
    others = tuple(pair for pair in hashes if pair[0].lower() != target.lower())
    draft.set(hashes=(*others, (target, source)))


def _password_rules(draft: Draft, line: Line) -> None:
    """Check a parameter as a new password, or with `off` do not. Raises `BadValueError` for other words."""
    parameter, *switches = line.arguments
    switch = switches[0].lower() if switches else "on"
    if len(switches) > 1 or switch not in ("on", "off"):
        raise BadValueError("`password_rules <parameter>` or `password_rules <parameter> off` is expected")
    earlier: tuple[tuple[str, str], ...] = draft.get("password_rules", ())
    draft.set(password_rules=(*earlier, (parameter, switch)))


ANNOTATIONS = (
    Annotation(
        name="login",
        aliases=("login", "signin"),
        syntax="login",
        description="The row that the routine returns signs its caller in: columns become claims. Any caller may call "
        "it.",
        apply=flag("login"),
    ),
    Annotation(
        name="impersonate",
        aliases=("impersonate",),
        syntax="impersonate",
        description="The row that the routine returns is that of another user, as whom the caller acts from then on; "
        "further claims identify the caller. Only for the roles or users that `authorize` lists, and not during "
        "another impersonation.",
        apply=_impersonate,
    ),
    Annotation(
        name="refuse_impersonation",
        aliases=("refuse_impersonation",),
        syntax="refuse_impersonation",
        description="Refuses callers who impersonate another user, for example where a password is changed.",
        apply=_refuse_impersonation,
    ),
    Annotation(
        name="end_impersonation",
        aliases=("end_impersonation",),
        syntax="end_impersonation",
        description="The row that the routine returns ends the impersonation: the caller continues as themselves. "
        "Only during an impersonation.",
        apply=_end_impersonation,
    ),
    Annotation(
        name="user_parameters",
        aliases=("user_parameters", "user_params"),
        syntax="user_parameters",
        description="Fills parameters from the claims of the caller; values of the request for them are ignored.",
        apply=flag("user_parameters"),
        assign=assigned_flag("user_parameters"),
    ),
    Annotation(
        name="user_context",
        aliases=("user_context",),
        syntax="user_context",
        description="Writes the claims of the caller to session variables before the routine runs.",
        apply=flag("user_context"),
        assign=assigned_flag("user_context"),
    ),
    Annotation(
        name="role_from_claim",
        aliases=("role_from_claim",),
        syntax="role_from_claim",
        description="Runs the routine with the PostgreSQL role that a claim of the caller names, so that the "
        "privileges and row level security of this role apply. Callers without one of the allowed roles are refused.",
        apply=flag("role_from_claim"),
        assign=assigned_flag("role_from_claim"),
    ),
    Annotation(
        name="logout",
        aliases=("logout", "signout"),
        syntax="logout",
        description="Signs the caller out of the schemes that the routine names, or of the default scheme.",
        apply=flag("logout"),
    ),
    Annotation(
        name="parameter_hash",
        aliases=("parameter_hash", "param_hash"),
        syntax="parameter_hash <parameter>",
        description="Replaces the value of a parameter, a password, by its hash. One parameter in each line.",
        apply=_parameter_hash,
        assign=_assign_parameter_hash,
        minimum_words=2,
    ),
    Annotation(
        name="password_rules",
        aliases=("password_rules",),
        syntax="password_rules <parameter> [off]",
        description="Checks a parameter by the rules of `Auth:Passwords`, although the service makes no hash of it "
        "(SQL does). With `off`, a parameter of which it makes one is not checked, such as a PIN.",
        apply=_password_rules,
        minimum_words=2,
    ),
)
