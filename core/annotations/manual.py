"""The page of the manual on all annotations: declarations, each with an example that the tests run.

Examples are Markdown, one text for each module of declarations. Its heading is the title of the group; a heading of the
second level is the name of an annotation, followed by its example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rowcall.core.annotations import GROUPS
from rowcall.core.annotations.declaration import Annotation

_HEAD = """\
# Annotations

After reading this page, you can find the annotation for a purpose and write it correctly.

<!-- Written by `make docs` from core/annotations/ and docs/examples/. A test fails when it is out of date. -->

Annotations are lines in the comment of a routine. [Endpoints](endpoints.md) describes how a comment is read, and all
forms of `HTTP`.

- The first word of a line decides. Its case does not matter, and it may begin with `@`: `@authorize`.
- Words are separated by blanks or commas. In a syntax, `[…]` is optional, `|` separates choices, `<…>` is a value, and
  `, ...` a repetition.
- Lines apply from top to bottom: of two lines with different values the later one takes precedence.
- A line that is not an annotation is prose. The log warns of lines that resemble misspelt annotations, such as `@parm`,
  and of a comment that begins with `GET /x` and has no `HTTP`.
- A line with an invalid argument has no effect and is logged as a warning, once.
- An annotation that protects an endpoint leaves the endpoint out if it is misspelt, has an invalid value, or names
  something that does not exist (a parameter, a column, a rule, a policy, an upload handler); the log contains the
  reason. A sentence that begins with the same word is prose: it has an article or a preposition, ends with a period, or
  begins with a capital letter and contains no known name.
- If the column `=` has a mark, `word = value` has the same meaning; the values of flags are then `true` and `false`.

`rowcall --annotations` prints the list as JSON.
"""


_COLUMNS = ("Name", "Words", "`=`", "Meaning")
_HEADING = re.compile(r"^# (?P<title>.+)\n", re.MULTILINE)
_EXAMPLE = re.compile(r"^## (?P<name>\S+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def manual(texts: Mapping[str, str], settings: str) -> str:
    """Return the page of the manual about annotations, as Markdown.

    texts: module of annotations → its examples. settings: the configuration with which the examples run, as JSON.
    """
    index = [_row(_COLUMNS), _row(("---",) * len(_COLUMNS))]
    index += [_row(_cells(annotation)) for group in GROUPS.values() for annotation in group]
    served = f"The examples below use this configuration:\n\n```json rowcall.json\n{settings.strip()}\n```\n"
    sections = [_group(name, group, texts.get(name, "")) for name, group in GROUPS.items()]
    return "\n".join((_HEAD, "\n".join(index) + "\n", served, *sections))


def examples(text: str) -> dict[str, str]:
    """Return the examples in the Markdown text of one module, by annotation. A heading `## name` precedes the example
    of each annotation."""
    return {match["name"]: match["text"].strip() for match in _EXAMPLE.finditer(text)}


def _group(name: str, group: tuple[Annotation, ...], text: str) -> str:
    """Return the section of a module of annotations. text: its examples."""
    heading = _HEADING.search(text)
    title = name.replace("_", " ").capitalize() if heading is None else heading["title"]
    examples_by_name = examples(text)
    return "\n".join(
        (f"## {title}\n", *(_section(annotation, examples_by_name.get(annotation.name, "")) for annotation in group))
    )


def _section(annotation: Annotation, example: str) -> str:
    """Return the section of an annotation. example: as Markdown; empty: none."""
    parts = [f"### {annotation.name}", annotation.description, f"```\n{annotation.syntax}\n```", example]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(annotation: Annotation) -> Iterator[str]:
    """Yield the cells of an annotation in the index."""
    yield f"[`{annotation.name}`](#{annotation.name})"
    yield ", ".join(f"`{word}`" for word in annotation.aliases) or "none: by its form"
    yield "yes" if annotation.assignable else ""
    yield annotation.description


def _row(cells: Iterator[str] | tuple[str, ...]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
