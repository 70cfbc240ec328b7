"""The configuration as a tree of texts with the places where they were written.

All values are text until a typed read converts them (configuration-4, configuration-5). Keys ignore case everywhere. An
array is a section whose keys are the indexes, so that arrays are merged by index with the same rule as objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

MAX_DEPTH = 64
"""Maximum number of names in a path. Trees are walked recursively, and no valid configuration is nested deeper."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The place where a value was written."""

    source: str
    """A file name, `environment` or `command line`."""
    line: int = 0
    """Line number from 1; 0 for sources without lines."""
    column: int = 0
    """Column from 1, in characters; 0 for sources without lines."""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value of the configuration, as text."""

    text: str | None
    """None for an explicit `null`."""
    origin: Origin


@dataclass(frozen=True, slots=True)
class Child:
    """A named node of a section."""

    name: str
    """The name in the user's spelling."""
    node: Node
    origin: Origin
    """The place of the name."""
    former: str = ""
    """The name in the user's spelling if it is a former name of the key."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section or an array of the configuration."""

    children: Mapping[str, Child] = field(default_factory=dict)
    """Children by case-folded name; a plain dict, so that settings can be pickled for the workers."""
    is_array: bool = False

    def get(self, name: str) -> Node | None:
        child = self.children.get(name.casefold())
        return None if child is None else child.node

    def __iter__(self) -> Iterator[Child]:
        """Iterate over children in sorted order: numbers by value, then names, ignoring case (configuration-4,
        configuration-5)."""
        return iter(sorted(self.children.values(), key=lambda child: _sort_key(child.name)))


Node = Scalar | Section


def is_index(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _sort_key(name: str) -> tuple[int, int, str]:
    if is_index(name):
        # `int` refuses thousands of digits. Of two numbers without leading zeros, the longer one is greater.
        digits = name.lstrip("0")
        return (0, len(digits), digits)
    return (1, 0, name.casefold())


def find(root: Section, path: str) -> Node | None:
    """Return the node at `path`, names in any case separated by colons; None: the configuration has no such node."""
    node: Node | None = root
    for name in path.split(":"):
        if not isinstance(node, Section):
            return None
        node = node.get(name)
    return node


def place(root: Section, path: str) -> Origin | None:
    """Return the place where the value at `path` was written; for a section or list, the place of its name.

    None: the configuration has no such node.
    """
    above, _, name = path.rpartition(":")
    section = find(root, above) if above else root
    child = section.children.get(name.casefold()) if isinstance(section, Section) else None
    if child is None:
        return None
    return child.node.origin if isinstance(child.node, Scalar) else child.origin


def merge(base: Section, over: Section) -> Section:
    """Return a new tree of `over` merged over `base`: sections and arrays deeply; any other value of `over`, also an
    explicit null, replaces that of `base`.

    The origin of a node is that in `over`, its name that in `base`: names of policies, profiles and schemes, which
    annotations use, are those of the source that introduces them, whatever the case in a later one.
    """
    children = dict(base.children)
    for folded, child in over.children.items():
        earlier = children.get(folded)
        if earlier is not None and isinstance(earlier.node, Section) and isinstance(child.node, Section):
            child = replace(child, node=merge(earlier.node, child.node))
        children[folded] = child if earlier is None else replace(child, name=earlier.name)
    return Section(children, is_array=over.is_array)


def merge_all(sections: Iterable[Section]) -> Section:
    merged = Section()
    for section in sections:
        merged = merge(merged, section)
    return merged


def single(path: str, text: str | None, origin: Origin) -> Section:
    """Return a tree with one value: `Cors:AllowedOrigins:0` gives two sections and a text. text: None: null."""
    name, colon, below = path.partition(":")
    node = single(below, text, origin) if colon else Scalar(text, origin)
    return Section({name.casefold(): Child(name, node, origin)})


def leaves(node: Node, path: str = "") -> Iterator[tuple[str, Scalar]]:
    """Yield the path and value of each single value in a node, in sorted order. path: of the node; empty: it is the
    root."""
    if isinstance(node, Scalar):
        yield path, node
        return
    for child in node:
        yield from leaves(child.node, f"{path}:{child.name}" if path else child.name)
