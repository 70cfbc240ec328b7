"""Configuration as a tree of texts, each of which knows where it was written.

Everything is text until a typed read asks for more (configuration-4, configuration-5). Keys ignore case everywhere; an
array is a
section whose keys are its indexes, which is what makes "arrays merge by index" the same rule as "objects merge deeply".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

MAX_DEPTH = 64
"""Names of a path, at most: what is nested deeper is no configuration, and trees are walked recursively."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written."""

    source: str
    """A file name, `environment` or `command line`."""
    line: int = 0
    """From 1; 0 where there are no lines."""
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str | None
    """None for an explicit `null`."""
    origin: Origin


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    """As the user spelled it."""
    node: Node
    origin: Origin
    """Where the name was written."""


@dataclass(frozen=True, slots=True)
class Section:
    children: Mapping[str, Child] = field(default_factory=dict)
    """By case-folded name. A plain dict in practice, so that settings can be pickled for the workers."""
    is_array: bool = False

    def get(self, name: str) -> Node | None:
        child = self.children.get(name.casefold())
        return None if child is None else child.node

    def __iter__(self) -> Iterator[Child]:
        """Children in sorted order: numbers first, by value, then names without regard to case (configuration-4,
        configuration-5)."""
        return iter(sorted(self.children.values(), key=lambda child: _sort_key(child.name)))


Node = Scalar | Section


def is_index(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _sort_key(name: str) -> tuple[int, int, str]:
    if is_index(name):
        return (0, int(name), "")
    return (1, 0, name.casefold())


def find(root: Section, path: str) -> Node | None:
    """Return the node at the colon-separated `path`, or None."""
    node: Node | None = root
    for name in path.split(":"):
        if not isinstance(node, Section):
            return None
        node = node.get(name)
    return node


def place(root: Section, path: str) -> Origin | None:
    """Where the value at `path` was written, or the name of the section or list that stands there."""
    above, _, name = path.rpartition(":")
    section = find(root, above) if above else root
    child = section.children.get(name.casefold()) if isinstance(section, Section) else None
    if child is None:
        return None
    return child.node.origin if isinstance(child.node, Scalar) else child.origin


def merge(base: Section, over: Section) -> Section:
    """Lay `over` on `base`: sections and arrays deeply, anything else (also an explicit null) replaces.

    The spelling of the later source wins, so that a message shows what the user wrote last.
    """
    children = dict(base.children)
    for folded, child in over.children.items():
        earlier = children.get(folded)
        if earlier is not None and isinstance(earlier.node, Section) and isinstance(child.node, Section):
            child = Child(child.name, merge(earlier.node, child.node), child.origin)
        children[folded] = child
    return Section(children, is_array=over.is_array)


def merge_all(sections: Iterable[Section]) -> Section:
    merged = Section()
    for section in sections:
        merged = merge(merged, section)
    return merged


def single(path: str, text: str | None, origin: Origin) -> Section:
    """The tree that holds one value: `Cors:AllowedOrigins:0` gives two sections and a text."""
    name, colon, below = path.partition(":")
    node = single(below, text, origin) if colon else Scalar(text, origin)
    return Section({name.casefold(): Child(name, node, origin)})


def leaves(node: Node, path: str = "") -> Iterator[tuple[str, Scalar]]:
    """Every text with its full path, in sorted order."""
    if isinstance(node, Scalar):
        yield path, node
        return
    for child in node:
        yield from leaves(child.node, f"{path}:{child.name}" if path else child.name)
