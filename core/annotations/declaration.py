"""What an annotation is: one frozen declaration, from which parser, `--annotations` and manual are made.

A new annotation is a new declaration in one of the modules of this package. Its functions change a `Draft`, the
endpoint as far as the comment has been read, and raise `BadValueError` for an argument they cannot use, which leaves
the draft as it was and becomes a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from rowcall.core.endpoint.endpoint import Options
from rowcall.core.endpoint.parameter_changes import ParameterChange
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.text.naming import api_name

Wish = TypeVar("Wish")

SAYS_YES = frozenset({"true", "on", "enabled", "enable", "1"})
SAYS_NO = frozenset({"false", "off", "disabled", "disable", "0"})


class BadValueError(ValueError):
    """The argument of an annotation does not fit; the text says what would."""


HIDDEN = "***"
"""Shown in place of what is secret."""


class Line:
    """One comment line, trimmed, as annotations look at it (reference 01, 5.1)."""

    __slots__ = ("_bare", "keyword", "shown", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.shown = text
        """The text without what must not be shown."""
        self._bare = text.removeprefix("@")
        self.words = tuple(filter(None, self._bare.replace(",", " ").split(" ")))
        """Split at blanks and commas; tabs belong to words."""
        self.keyword = self.words[0].lower() if self.words else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and (self.text, self.shown) == (other.text, other.shown)

    def __hash__(self) -> int:
        return hash(self.text)

    def hide(self, word: str) -> None:
        """Show `word` alone: what follows is secret."""
        self.shown = f"{word} {HIDDEN}"

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    @property
    def rest(self) -> str:
        """Everything behind the first word, commas and inner blanks kept."""
        return self._bare.partition(" ")[2].strip()

    @property
    def joined(self) -> str:
        """The words behind the first one, with one blank between them."""
        return " ".join(self.arguments)

    def split_at(self, separator: str) -> tuple[str, str] | None:
        """Both sides of the first `separator`, if the left one is a single name (reference 01, 5.1 rule 5)."""
        left, found, right = self._bare.partition(separator)
        if not found or not _is_name(left := left.strip()):
            return None
        return left, right.strip()


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line that protects the endpoint, and the words of it that have to name something.

    What exists is known once the endpoint has been built (`core.building.protective_lines`).
    """

    annotation: str
    line: Line
    words: tuple[str, ...]
    known: tuple[str, ...] = ()
    """Those that named a parameter when the line was read; a later line may rename it."""


def _is_name(text: str) -> bool:
    return bool(text) and text.replace("-", "").replace("_", "").replace("@", "").isalnum()


@dataclass(slots=True)
class Draft:
    """An endpoint while its comment is read. Later lines win."""

    name: str
    """Identity of the object, for diagnostics."""
    method: str
    tags: frozenset[str] = frozenset()
    """What `for`, `enabled` and `disabled` match. Objects without tags treat `for` lines as prose."""
    parameters: frozenset[str] = frozenset()
    """Database names of the parameters: a `key = value` with such a key is an expression."""
    claimed: frozenset[str] = frozenset()
    """Lines that have been understood elsewhere."""
    of_extension: bool = False
    """The comment is that of an extension's author: prose in it is no misspelt annotation."""
    methods: frozenset[str] = frozenset()
    """Those that a line outside of a `for` block may give it (`core.catalogue.source`); empty: any."""
    writes: bool = False
    """It never answers GET."""
    misses_method: bool = False
    """The comment exposes other operations of the same object, and not this one."""
    path: str | None = None
    """As annotated; None: the generated path."""
    exposed: bool = False
    """An active HTTP annotation was seen."""
    enabled: bool = True
    block: bool = False
    """Inside a `for` block."""
    refused: bool = False
    """A line was meant to protect the endpoint, and does not."""
    meant_http: bool = False
    """A line was meant to make an endpoint of it, and does not."""
    muted: bool = False
    """Inside a `for` block that is not about this object."""
    named: list[NamedLine] = field(default_factory=list)
    """Those of `encrypt`, `decrypt` and `validate`, in order."""
    parameter_changes: list[ParameterChange] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    expressions: dict[str, str] = field(default_factory=dict)
    custom: dict[str, str] = field(default_factory=dict)
    changes: dict[str, object] = field(default_factory=dict)
    """Options set so far, by field name of `Options`."""
    applied: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    """Lines that are no annotation and resemble none: the only ones that documents and generated code publish."""
    withheld: list[str] = field(default_factory=list)
    """Lines that are neither applied nor published: their form is that of an annotation."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)
    """Name of each annotation that was understood → its last line, which wins, as it may be shown."""

    def set(self, **changes: object) -> None:
        """Change options: `draft.set(single=True)`."""
        self.changes.update(changes)

    def get(self, option: str, nothing: Wish) -> Wish:
        """An option that is a record, as far as it has been filled."""
        return cast("Wish", self.changes.get(option, nothing))

    def within(self, option: str, nothing: Any, **changes: object) -> None:
        """Change fields of an option that is a record: `draft.within("caching", Caching(), enabled=True)`."""
        self.changes[option] = replace(self.get(option, nothing), **changes)

    def parameter_named(self, word: str) -> str | None:
        """Database name of the parameter that a word means: that name itself, in any case, or its name in requests."""
        if word in self.parameters:
            return word
        names = sorted(self.parameters)
        wanted = word.lower()
        exact = (name for name in names if name.lower() == wanted)
        return next(exact, None) or next((name for name in names if api_name(name).lower() == wanted), None)

    @property
    def parameter_words(self) -> frozenset[str]:
        """Database names of the parameters and their names in requests."""
        return frozenset(word for name in self.parameters for word in (name, api_name(name)))

    def options(self, defaults: Options) -> Options:
        """The defaults with everything that the comment changed."""
        return changed_options(
            defaults,
            self.changes,
            tuple(self.headers),
            tuple(self.expressions.items()),
            tuple(self.custom.items()),
        )

    def warn(self, line: Line, message: str) -> None:
        self.diagnostics.append(Diagnostic(self.name, line.shown, message))


def changed_options(
    defaults: Options,
    changes: Mapping[str, object],
    headers: tuple[tuple[str, str], ...],
    expressions: tuple[tuple[str, str], ...],
    custom: tuple[tuple[str, str], ...],
) -> Options:
    """The defaults with everything that a comment has changed."""
    return replace(defaults, headers=headers, expressions=expressions, custom=custom, **changes)  # type: ignore[arg-type]


Apply = Callable[[Draft, Line], None]
"""Effect of the keyword form, `timeout 5s`."""

Assign = Callable[[Draft, str], None]
"""Effect of the form `timeout = 5 seconds`, given the right side."""

AssignWord = Callable[[Draft, str, str], None]
"""The same for a declaration whose words each keep a value of their own: given the word and the right side."""


@dataclass(frozen=True, slots=True)
class Annotation:
    name: str
    aliases: tuple[str, ...]
    """Every accepted word. Empty for the forms that have no keyword."""
    syntax: str
    """`[…]` may be left out, `a|b` is a choice of words, ` | ` one of whole forms, `, ...` more of the same."""
    description: str
    apply: Apply | None = None
    assign: Assign | None = None
    """None: `keyword = value` is an ordinary custom parameter."""
    assign_word: AssignWord | None = None
    """In place of `assign`."""
    minimum_words: int = 1
    """A shorter line is prose."""
    maximum_words: int | None = None
    """A longer line is prose."""
    in_effect: bool = True
    """False: understood and checked, but what it asks for does not exist yet; using it gives one warning."""
    everywhere: bool = False
    """Counts in muted blocks too (reference 01, 5.2: plugins see every line)."""
    colon_names: bool = False
    """A first argument such as `:id` is a name, where any other line with a colon behind a word would be a header."""
    in_files: bool = False
    """Only `.sql` files have it, and read it by themselves (`core.sqlfile.statement_comments`)."""
    secret: bool = False
    """Its arguments never appear in logs or output."""

    def fits(self, words: int) -> bool:
        """Return whether a line of so many words, the keyword among them, is this annotation."""
        return self.minimum_words <= words and (self.maximum_words is None or words <= self.maximum_words)

    @property
    def assignable(self) -> bool:
        """`word = value` means something."""
        return self.assign is not None or self.assign_word is not None


def flag(option: str) -> Apply:
    """Effect of an annotation without arguments: turn a boolean option on."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: True})

    return apply


def assigned_flag(option: str) -> Assign:
    """Effect of `flag = true|false`; any other text changes nothing (reference 01, 5.4), which is told."""

    def assign(draft: Draft, value: str) -> None:
        draft.set(**{option: true_or_false(value)})

    return assign


def true_or_false(value: str) -> bool:
    """Raises `BadValueError`."""
    word = value.lower()
    if word not in ("true", "false"):
        raise BadValueError(f"'{value}' is neither true nor false")
    return word == "true"


def switch(value: str) -> bool:
    """Meaning of a switch in the form `key = value` (reference 01, 5.5 rule 3).

    Raises:
        BadValueError: the word is neither on nor off.
    """
    word = value.lower()
    if word in SAYS_YES:
        return True
    if word in SAYS_NO:
        return False
    raise BadValueError(f"'{value}' is neither true nor false")


def choose(value: str, choices: Mapping[str, object]) -> object:
    """The meaning of a word, compared without regard to case."""
    try:
        return choices[value.lower()]
    except KeyError:
        raise BadValueError(f"'{value}' is none of {', '.join(choices)}") from None
