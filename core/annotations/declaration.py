"""What an annotation is: one frozen declaration, from which parser, `--annotations` and manual are made.

A new annotation is a new declaration in one of the modules of this package. Its functions change a `Draft`, the
endpoint as far as the comment has been read, and raise `BadValueError` for an argument they cannot use, which leaves
the draft as it was and becomes a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rowcall.core.diagnostics import Diagnostic
from rowcall.core.endpoint import Options


class BadValueError(ValueError):
    """The argument of an annotation does not fit; the text says what would."""


class Line:
    """One comment line, trimmed, as annotations look at it (reference 01, 5.1)."""

    __slots__ = ("_bare", "keyword", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = text.removeprefix("@")
        self.words = tuple(word for word in self._bare.replace(",", " ").split(" ") if word)
        """Split at blanks and commas; tabs belong to words."""
        self.keyword = self.words[0].lower() if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[1:]

    @property
    def rest(self) -> str:
        """Everything behind the first word, commas and inner blanks kept."""
        return self._bare.partition(" ")[2].strip()

    def split_at(self, separator: str) -> tuple[str, str] | None:
        """Both sides of the first `separator`, if the left one is a single name (reference 01, 5.1 rule 5)."""
        left, found, right = self._bare.partition(separator)
        left = left.strip()
        return (left, right.strip()) if found and _is_name(left) else None


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
    path: str | None = None
    """As annotated; None: the generated path."""
    exposed: bool = False
    """An active HTTP annotation was seen."""
    enabled: bool = True
    muted: bool = False
    """Inside a `for` block that is not about this object."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    expressions: dict[str, str] = field(default_factory=dict)
    custom: dict[str, str] = field(default_factory=dict)
    changes: dict[str, object] = field(default_factory=dict)
    """Options set so far, by field name of `Options`."""
    applied: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def set(self, **changes: object) -> None:
        """Change options: `draft.set(single=True)`."""
        self.changes.update(changes)

    def options(self, defaults: Options) -> Options:
        """The defaults with everything that the comment changed."""
        return replace(
            defaults,
            headers=tuple(self.headers),
            expressions=tuple(self.expressions.items()),
            custom=tuple(self.custom.items()),
            **self.changes,  # type: ignore[arg-type]
        )

    def warn(self, line: Line, message: str) -> None:
        self.diagnostics.append(Diagnostic(self.name, line.text, message))


Apply = Callable[[Draft, Line], None]
"""Effect of the keyword form, `timeout 5s`."""

Assign = Callable[[Draft, str], None]
"""Effect of the form `timeout = 5 seconds`, given the right side."""


@dataclass(frozen=True, slots=True)
class Annotation:
    name: str
    aliases: tuple[str, ...]
    """Every accepted word. Empty for the forms that have no keyword."""
    syntax: str
    description: str
    apply: Apply | None = None
    assign: Assign | None = None
    """None: `keyword = value` is an ordinary custom parameter."""
    minimum_words: int = 1
    """A shorter line is prose."""


def flag(option: str) -> Apply:
    """Effect of an annotation without arguments: turn a boolean option on."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: True})

    return apply


def assigned_flag(option: str) -> Assign:
    """Effect of `flag = true|false`; any other text changes nothing (reference 01, 5.4)."""

    def assign(draft: Draft, value: str) -> None:
        if value.lower() in ("true", "false"):
            draft.set(**{option: value.lower() == "true"})

    return assign


def choose(value: str, choices: Mapping[str, object]) -> object:
    """The meaning of a word, compared without regard to case."""
    try:
        return choices[value.lower()]
    except KeyError:
        raise BadValueError(f"'{value}' is none of {', '.join(choices)}") from None
