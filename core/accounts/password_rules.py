"""Rules for new passwords (NIST SP 800-63B, 3.1.1.2): a length, a list of breached passwords, and words about their
user.

There are no rules about kinds of characters, which NIST advises against. The strength is not estimated, because weak
passwords are in the list of breached ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rowcall.core.auth.parameter_injection import hashed_parameters
from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.sections.declaration import integer, section, text, texts
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.values import lower_case_texts

LEAST_WORD = 4
"""Characters of a word about the user from which passwords must not contain it: a shorter one is in too many."""
BREACHED = "is in a list of passwords that others have used: choose another"


@section("Auth:Passwords", "Rules for new passwords: values of parameters of which a hash is made.")
class PasswordRules(Record):
    """Rules for new passwords. Lengths in characters; 0: no bound. Files are paths; None: no such list. not_containing:
    names of parameters in lower case."""

    minimum: int = integer(
        "MinimumLength", 0, "Fewest characters. 0: no minimum. NIST recommends 15, or 8 with a second factor."
    )
    maximum: int = integer("MaximumLength", 0, "Most characters: 64 or more. 0: no maximum.")
    breached_file: str | None = text(
        "BreachedFile",
        None,
        "File of SHA-1 hashes of passwords, one in each line as `HASH:COUNT`, sorted by hash, as "
        "haveibeenpwned.com offers it. These passwords are refused.",
    )
    words_file: str | None = text(
        "WordsFile",
        None,
        "File of passwords, one in each line, without regard to case, of 10 MB at most. They are refused.",
    )
    not_containing: frozenset[str] = texts(
        "NotContaining",
        (),
        "Parameters, such as `_email` or `name`, whose value must not be part of a password. If there is one, "
        "the name of the signed-in user must not be part of it either.",
        convert=lower_case_texts,
    )

    def __post_init__(self) -> None:
        if 0 < self.maximum < max(self.minimum, 64):
            raise ConfigError(
                "Auth:Passwords:MaximumLength: 64 or more, and MinimumLength or more, so that pass phrases fit"
            )

    @property
    def exist(self) -> bool:
        return self != PasswordRules()


def rule_violation(rules: PasswordRules, password: str, words: Iterable[str]) -> str | None:
    """Return what is wrong with the password, as the end of a sentence without the password; None: nothing.

    words: texts about the user. The password must contain neither them nor, of an e-mail address, the part before `@`;
    case is ignored, and so are texts and parts of less than `LEAST_WORD` characters. The rules about files are not
    checked here.
    """
    if len(password) < rules.minimum:
        return f"has fewer than {rules.minimum} characters"
    if rules.maximum and len(password) > rules.maximum:
        return f"has more than {rules.maximum} characters"
    folded = password.casefold()
    if any(part in folded for word in words for part in _parts(word)):
        return "contains the name or address of its user: choose another"
    return None


def checked_password_indexes(endpoint: Endpoint) -> tuple[int, ...]:
    """Return the indexes of parameters that are checked: those of which a hash is made, except in a login, and those
    that `password_rules` switches on, without those that it switches off."""
    hashed = () if endpoint.options.login else hashed_parameters(endpoint)
    checked = {source: True for _, source in hashed}
    for name, switch in endpoint.options.password_rules:
        index = _index_of(endpoint, name)
        if index is not None:
            checked[index] = switch == "on"
    return tuple(index for index, on in checked.items() if on)


def password_rule_diagnostics(endpoint: Endpoint, used: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name in `password_rules` that is no parameter of the endpoint. It leaves the endpoint
    out, because a password could be stored unchecked.

    used: name of each applied annotation → its comment line.
    """
    for name, _ in endpoint.options.password_rules:
        if _index_of(endpoint, name) is None:
            message = f"{endpoint.name}: {name} in password_rules is no parameter; the endpoint is left out"
            yield Diagnostic(endpoint.routine.identity, used.get("password_rules"), message, left_out=1)


def _index_of(endpoint: Endpoint, name: str) -> int | None:
    folded = name.lower()
    return next(
        (
            index
            for index, parameter in enumerate(endpoint.parameters)
            if folded in (parameter.db_name.lower(), parameter.api_name.lower())
        ),
        None,
    )


def _parts(word: str) -> Iterable[str]:
    """Yield the word and, for an e-mail address, the part before `@`, with case folded, if they have at least
    `LEAST_WORD` characters. The parts may be equal."""
    folded = word.strip().casefold()
    return (part for part in (folded, folded.partition("@")[0]) if len(part) >= LEAST_WORD)
