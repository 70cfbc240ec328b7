"""Declaration of annotations: one frozen record, from which parser, `--annotations` and manual are derived.

A new annotation is a new declaration in one of the modules of `rows`. Its functions change a `Draft`, which is the
endpoint as far as its comment has been read. For an argument that they cannot use, they raise `BadValueError` and leave
the draft unchanged; the error becomes a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from rowcall.core.endpoint.endpoint import Options
from rowcall.core.endpoint.parameter_changes import ParameterChange
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.text.naming import api_name

Wish = TypeVar("Wish")

TRUE_WORDS = frozenset({"true", "on", "enabled", "enable", "1"})
FALSE_WORDS = frozenset({"false", "off", "disabled", "disable", "0"})


class BadValueError(ValueError):
    """The argument of an annotation is not valid; the message names valid arguments."""


HIDDEN = "***"
"""Shown in place of secret arguments."""


class Line:
    """One trimmed comment line and its parts (comments-2)."""

    __slots__ = ("_bare", "keyword", "shown", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.shown = text
        """The text without secret arguments, for logs and output."""
        self._bare = text.removeprefix("@")
        self.words = tuple(filter(None, self._bare.replace(",", " ").split(" ")))
        """Split at blanks and commas; tabs belong to words."""
        self.keyword = self.words[0].lower() if self.words else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and (self.text, self.shown) == (other.text, other.shown)

    def __hash__(self) -> int:
        return hash(self.text)

    def hide(self, word: str) -> None:
        """Hide all but `word` of the line from messages and output, because the rest is secret: `shown` becomes `word
        ***`. word: the first word, as written."""
        self.shown = f"{word} {HIDDEN}"

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    @property
    def rest(self) -> str:
        """Everything behind the first blank, with commas and inner blanks. A comma does not end the first word here,
        unlike in `words`: for `tags,a b` this is `b`."""
        return self._bare.partition(" ")[2].strip()

    def text_after(self, count: int) -> str:
        """Return everything behind the first `count` words, as written. A comma ends a word, as in `words`."""
        return "".join(re.split("[ ,]+", self._bare.lstrip(" ,"), maxsplit=count)[count:])

    @property
    def joined(self) -> str:
        """The words after the first word, with one blank between them."""
        return " ".join(self.arguments)

    def split_at(self, separator: str) -> tuple[str, str] | None:
        """Return both sides of the first `separator` if the left side is a single name, else None (comments-2 rule
        5)."""
        left, match, right = self._bare.partition(separator)
        if not match or not _is_name(left := left.strip()):
            return None
        return left, right.strip()


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line that protects the endpoint, and the words of it that must be names of existing objects.

    annotation: its name. `core.building.protective_lines` checks the names after the endpoint has been built.
    """

    annotation: str
    line: Line
    words: tuple[str, ...]
    known: tuple[str, ...] = ()
    """The words that named a parameter when the line was read; a later line may rename the parameter."""


def _is_name(text: str) -> bool:
    """Return whether a text is a word of letters, digits, `-`, `_` and `@`, with at least one letter or digit."""
    return bool(text) and text.replace("-", "").replace("_", "").replace("@", "").isalnum()


@dataclass(slots=True)
class Draft:
    """An endpoint while its comment is read. Later lines take precedence."""

    name: str
    """Identity of the object, for diagnostics."""
    method: str
    tags: frozenset[str] = frozenset()
    """The words that `for`, `enabled` and `disabled` match. For objects without tags, `for` lines are prose."""
    parameters: frozenset[str] = frozenset()
    """Database names of the parameters: a `key = value` with such a key is an expression."""
    claimed: frozenset[str] = frozenset()
    """Lines that were applied elsewhere."""
    of_extension: bool = False
    """The comment is from the author of an extension, so prose in it is not reported as a misspelt annotation."""
    methods: frozenset[str] = frozenset()
    """Methods that a line outside of a `for` block may set (`core.catalogue.source`); empty: any."""
    writes: bool = False
    """The object writes, so it can never be a GET endpoint."""
    misses_method: bool = False
    """The comment exposes other operations of the same object, but not this operation."""
    path: str | None = None
    """As annotated; None: the generated path."""
    exposed: bool = False
    """The comment has an active HTTP annotation."""
    enabled: bool = True
    block: bool = False
    """Inside a `for` block."""
    refused: bool = False
    """A line should protect the endpoint and does not."""
    meant_http: bool = False
    """A line should expose the object as an endpoint and does not."""
    muted: bool = False
    """Inside a `for` block that does not apply to this object."""
    named: list[NamedLine] = field(default_factory=list)
    """Lines of `encrypt`, `decrypt` and `validate`, in order."""
    parameter_changes: list[ParameterChange] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    expressions: dict[str, str] = field(default_factory=dict)
    custom: dict[str, str] = field(default_factory=dict)
    changes: dict[str, object] = field(default_factory=dict)
    """Options set so far, by field name of `Options`."""
    applied: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    """Lines that neither are nor resemble annotations. Documents and generated code publish only these."""
    withheld: list[str] = field(default_factory=list)
    """Lines that are neither applied nor published, because they have the form of an annotation."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)
    """Name of each applied annotation → its last line, which takes precedence, without secret arguments."""

    def set(self, **changes: object) -> None:
        """Change options: `draft.set(single=True)`."""
        self.changes.update(changes)

    def get(self, option: str, default: Wish) -> Wish:
        """Return the current value of an option, or `default` if no line has set it."""
        return cast("Wish", self.changes.get(option, default))

    def change_fields(self, option: str, default: Any, **changes: object) -> None:
        """Change fields of an option that is a record: `draft.change_fields("caching", Caching(), enabled=True)`.
        default: the record that is changed if no line has set the option."""
        self.changes[option] = replace(self.get(option, default), **changes)

    def parameter_named(self, word: str) -> str | None:
        """Return the database name of the parameter that has this name in the database or in requests, in any case;
        None: there is none. The name in the database has precedence."""
        if word in self.parameters:
            return word
        names = sorted(self.parameters)
        lowered = word.lower()
        exact = (name for name in names if name.lower() == lowered)
        return next(exact, None) or next((name for name in names if api_name(name).lower() == lowered), None)

    @property
    def parameter_words(self) -> frozenset[str]:
        """Database names of the parameters and their names in requests."""
        return frozenset(word for name in self.parameters for word in (name, api_name(name)))

    def options(self, defaults: Options) -> Options:
        """Return the defaults with all changes of the comment."""
        return changed_options(
            defaults,
            self.changes,
            tuple(self.headers),
            tuple(self.expressions.items()),
            tuple(self.custom.items()),
        )

    def warn(self, line: Line, message: str) -> None:
        """Add a diagnostic for a line."""
        self.diagnostics.append(Diagnostic(self.name, line.shown, message))


def changed_options(
    defaults: Options,
    changes: Mapping[str, Any],
    headers: tuple[tuple[str, str], ...],
    expressions: tuple[tuple[str, str], ...],
    custom: tuple[tuple[str, str], ...],
) -> Options:
    """Return the defaults with all changes of a comment. changes: option → value. headers, expressions, custom: replace
    those of the defaults."""
    return replace(defaults, headers=headers, expressions=expressions, custom=custom, **changes)


Apply = Callable[[Draft, Line], None]
"""Function that applies the keyword form, `timeout 5s`."""

Assign = Callable[[Draft, str], None]
"""Function that applies the form `timeout = 5 seconds`. Its second argument is the right side."""

AssignWord = Callable[[Draft, str, str], None]
"""Function that applies the form `word = value` of a declaration with a separate value for each word. Arguments: draft,
word and right side."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """The declaration of one annotation: its words, its forms, and the functions that apply it to a draft."""

    name: str
    aliases: tuple[str, ...]
    """Every accepted word. Empty for the forms that have no keyword."""
    syntax: str
    """In a syntax, `[…]` is optional, `a|b` a choice of words, ` | ` a choice of whole forms, `, ...` a repetition."""
    description: str
    apply: Apply | None = None
    assign: Assign | None = None
    """None: `keyword = value` is an ordinary custom parameter."""
    assign_word: AssignWord | None = None
    """Instead of `assign`, if the annotation has several words with a value each."""
    minimum_words: int = 1
    """A shorter line is prose."""
    maximum_words: int | None = None
    """A longer line is prose."""
    everywhere: bool = False
    """Also applies in muted blocks (comments-10: plugins see every line)."""
    colon_names: bool = False
    """A first argument such as `:id` is a name. In other lines, a word with a colon makes the line a header."""
    in_files: bool = False
    """The annotation exists only in `.sql` files, where `core.sqlfile.statement_comments` reads it."""
    phrase: str | None = None
    """Two words that together are an alias, although the first word alone begins prose or a header."""
    secret: bool = False
    """Its arguments never appear in logs or output."""

    def fits(self, words: int) -> bool:
        """Return whether a line with this number of words, including the keyword, is this annotation."""
        return self.minimum_words <= words and (self.maximum_words is None or words <= self.maximum_words)

    @property
    def assignable(self) -> bool:
        """Whether the form `word = value` exists."""
        return self.assign is not None or self.assign_word is not None


def _arguments_text(line: Line) -> str:
    return line.joined


def rest_of(line: Line) -> str:
    """Return everything behind the first blank of a line, with commas and inner blanks, as `Line.rest` does."""
    return line.rest


def split_at_word(value: str, word: str) -> tuple[str, str | None]:
    """Return the texts before and after the first occurrence of a word, which stands between blanks or at an end, in
    any case. If the value does not contain the word, return the value and None. word: without special characters of
    regular expressions."""
    match = re.search(rf"(?<!\S){word}(?!\S)", value, re.IGNORECASE)
    return (value, None) if match is None else (value[: match.start()], value[match.end() :])


def first_word(line: Line) -> str:
    """Return the word behind the keyword. The line must have one."""
    return line.arguments[0]


def keyword_form(assign: Assign, value: Callable[[Line], str] = _arguments_text) -> Apply:
    """Return a function that applies `timeout 5s` as `timeout = 5s`. value: function that takes the value out of a
    line."""
    return lambda draft, line: assign(draft, value(line))


def flag(option: str) -> Apply:
    """Return a function that applies an annotation without arguments: it turns a boolean option on. option: field of
    `Options`."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: True})

    return apply


def assigned_flag(option: str) -> Assign:
    """Return a function that applies `flag = true|false`. For other texts, it raises `BadValueError` (comments-18).
    option: field of `Options`."""

    def assign(draft: Draft, value: str) -> None:
        draft.set(**{option: true_or_false(value)})

    return assign


def true_or_false(value: str) -> bool:
    """Return the value of a flag in the form `key = value`.

    Raises:
        BadValueError: the word is neither true nor false.
    """
    word = value.lower()
    if word not in ("true", "false"):
        raise BadValueError(f"'{value}' is neither true nor false")
    return word == "true"


def switch(value: str) -> bool:
    """Return the value of a switch: True for a word of `TRUE_WORDS`, False for one of `FALSE_WORDS`, in any case
    (comments-20).

    Raises:
        BadValueError: it is another word.
    """
    word = value.lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise BadValueError(f"'{value}' is neither true nor false")


def choose(value: str, choices: Mapping[str, object]) -> object:
    """Return the meaning of a word, compared without regard to case. choices: words in lower case → meaning.

    Raises `BadValueError` if the word is not one of the choices.
    """
    try:
        return choices[value.lower()]
    except KeyError:
        raise BadValueError(f"'{value}' is none of {', '.join(choices)}") from None
