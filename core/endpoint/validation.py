"""Rules for request values: the check of a rule, and its message to the caller (execution-6 to execution-10).

A rule checks the text of a value as it is in the request, without the database. NULL is None.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING

from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint

if TYPE_CHECKING:
    import regex

SEARCH_SECONDS = 0.1
"""Timeout of a pattern search, so that a backtracking pattern does not block other requests."""


class RuleType(enum.Enum):
    """What a rule checks."""

    NOT_NULL = "NotNull"
    NOT_EMPTY = "NotEmpty"
    REQUIRED = "Required"
    REGEX = "Regex"
    MIN_LENGTH = "MinLength"
    MAX_LENGTH = "MaxLength"
    MIN = "Min"
    MAX = "Max"
    RANGE = "Range"
    MIN_ITEMS = "MinItems"
    MAX_ITEMS = "MaxItems"


@dataclass(frozen=True, slots=True)
class Rule(Record):
    """A validation rule.

    message: `{0}` is the name of the parameter, `{1}` its name in requests, `{2}` the name of the rule.
    by_database_name: `{0}` is the name in the database, as in messages of the configuration; otherwise that in
    requests. status: of the response. length: bound of a length or a number of items. least, most: bounds of numbers;
    None: no bound.
    """

    name: str
    type: RuleType
    message: str
    status: int = 400
    pattern: str = ""
    length: int = 0
    least: Decimal | None = None
    most: Decimal | None = None
    by_database_name: bool = True

    @property
    def counts_items(self) -> bool:
        """Whether the rule checks an array as a whole."""
        return self.type in (RuleType.MIN_ITEMS, RuleType.MAX_ITEMS)

    @property
    def reads_text(self) -> bool:
        """Whether the rule checks the characters of a value, so that its spelling counts."""
        return self.type in (RuleType.REGEX, RuleType.MIN_LENGTH, RuleType.MAX_LENGTH)

    def accepts_count(self, items: int) -> bool:
        """Return whether an array may have this number of elements. Only for rules with `counts_items`."""
        return items >= self.length if self.type is RuleType.MIN_ITEMS else items <= self.length

    def accepts(self, text: str | None) -> bool:
        """Return whether a value is valid. text: as in the request; None: NULL or missing.

        NOT_EMPTY accepts NULL; REQUIRED refuses NULL and an empty text. For lengths, NULL counts as an empty text. No
        pattern matches NULL or an empty text, or a text whose search takes longer than `SEARCH_SECONDS`. For bounds of
        numbers, a text that is no number is invalid, and NULL is valid. Rules about the number of items accept each
        value.

        Raises `regex.error` if the pattern is not valid.
        """
        match self.type:
            case RuleType.NOT_NULL:
                return text is not None
            case RuleType.NOT_EMPTY:
                return text != ""
            case RuleType.REQUIRED:
                return bool(text)
            case RuleType.REGEX:
                return bool(text) and _pattern_matches(self.pattern, text or "")
            case RuleType.MIN_LENGTH:
                return len(text or "") >= self.length
            case RuleType.MAX_LENGTH:
                return len(text or "") <= self.length
            case RuleType.MIN | RuleType.MAX | RuleType.RANGE:
                return text is None or self._is_within_bounds(text)
            case RuleType.MIN_ITEMS | RuleType.MAX_ITEMS:
                return True

    def _is_within_bounds(self, text: str) -> bool:
        """Return whether a text is a number within the bounds."""
        try:
            number = Decimal(text)
        except InvalidOperation:
            return False
        if number.is_nan():
            return False
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def refusal(self, db_name: str, api_name: str, message: str | None = None) -> str:
        """Return the message to the caller, with names in place of its placeholders.

        db_name, api_name: of the parameter in the database and in requests. message: that of the comment, in which
        `{0}` is the name in requests; None: the message of the rule.
        """
        first = db_name if self.by_database_name and message is None else api_name
        message = self.message if message is None else message
        for place, word in (("{0}", first), ("{1}", api_name), ("{2}", self.name)):
            message = message.replace(place, word)
        return message


_UNSPECIFIC = "Validation failed for parameter '{0}'"


def default_message(kind: RuleType, length: int = 0, least: Decimal | None = None, most: Decimal | None = None) -> str:
    """Return the message of a configured rule without a message. It states the bounds that the rule checks, which are
    as in `Rule`."""
    match kind:
        case RuleType.MIN if least is not None:
            bounds = f"be at least {least:f}"
        case RuleType.MAX if most is not None:
            bounds = f"be at most {most:f}"
        case RuleType.RANGE if least is not None and most is not None:
            bounds = f"be between {least:f} and {most:f}"
        case RuleType.MIN_LENGTH:
            bounds = f"have at least {_format_count(length, 'character')}"
        case RuleType.MAX_LENGTH:
            bounds = f"have at most {_format_count(length, 'character')}"
        case RuleType.MIN_ITEMS:
            bounds = f"have at least {_format_count(length, 'item')}"
        case RuleType.MAX_ITEMS:
            bounds = f"have at most {_format_count(length, 'item')}"
        case _:
            return _UNSPECIFIC
    return f"Parameter '{{0}}' must {bounds}"


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _pattern_matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found in the text. False also if the search takes longer than `SEARCH_SECONDS`."""
    try:
        return compile_pattern(pattern).search(text, timeout=SEARCH_SECONDS) is not None
    except TimeoutError:
        return False


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Return the pattern as compiled. `$` at its end matches only the end of the value, unless the pattern contains
    `(?`, which may change the meaning of `$`.

    Raises `regex.error` if the pattern is not valid.
    """
    # Imported here, because it takes 1 MB and most services have no rule with a pattern.
    import regex

    return regex.compile(_at_the_end(pattern))


def _at_the_end(pattern: str) -> str:
    """Return the pattern with another notation for `$` at its end, because `$` also matches in front of a final line
    end. A pattern with `(?` is unchanged."""
    backslashes = len(pattern) - 1 - len(pattern[:-1].rstrip("\\"))
    if not pattern.endswith("$") or backslashes % 2 or "(?" in pattern:
        return pattern
    return pattern[:-1] + r"\Z"


BUILT_IN: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("not_null", RuleType.NOT_NULL, "Parameter '{0}' cannot be null", by_database_name=False),
        Rule("not_empty", RuleType.NOT_EMPTY, "Parameter '{0}' cannot be empty", by_database_name=False),
        Rule("required", RuleType.REQUIRED, "Parameter '{0}' is required", by_database_name=False),
        Rule(
            "email",
            RuleType.REGEX,
            "Parameter '{0}' must be a valid email address",
            by_database_name=False,
            # Possessive quantifiers avoid backtracking; `$` would allow a trailing line end.
            pattern=r"\A[^@\s]++@(?=[^@\s]+?\.[^@\s])[^@\s]++\Z",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Check:
    """The rules for one value of an endpoint. index: into `endpoint.parameters`."""

    index: int
    rules: tuple[Rule, ...] = field(default_factory=tuple)


def checks(endpoint: Endpoint, rules: Mapping[str, Rule]) -> Iterator[Check]:
    """Yield the checks of an endpoint, in the order in which the comment names the parameters. Unknown parameters and
    rules are ignored."""
    rules_by_parameter: dict[int, list[Rule]] = {}
    for name, rule_names in endpoint.options.validations:
        index = validated_parameter(endpoint, name)
        if index is not None:
            rules_by_parameter.setdefault(index, []).extend(
                rules[rule_name] for rule_name in rule_names if rule_name in rules
            )
    return (
        Check(index, tuple(parameter_rules)) for index, parameter_rules in rules_by_parameter.items() if parameter_rules
    )


def validated_parameter(endpoint: Endpoint, name: str) -> int | None:
    """Return the index of a parameter by its name in the database or in requests, compared exactly; None: no such
    parameter.

    For the name of a composite, it is the index of its first field.
    """
    for index, parameter in enumerate(endpoint.parameters):
        if name in (parameter.field or parameter.db_name, parameter.api_name):
            return index
    return next((index for index, parameter in enumerate(endpoint.parameters) if parameter.db_name == name), None)
