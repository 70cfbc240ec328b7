"""Replaces citations of documents outside of the repository by ids of rules, as docs/internals/citations.txt says.

    python ci/rename/replace_citations.py ROOT

Run it before `rename_terms.py`, as citations.txt names files by their paths of today. A line there is `CITATION →
RULES`, for one file `PATH: CITATION → RULES`, and for the Nth occurrence in it `PATH: CITATION#N → RULES`. A citation
may be broken over two lines. Lines of docstrings and comments that become longer than 120 characters are broken at
spaces. Delete citations.txt and this file afterwards.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

WIDTH = 120
FOLDERS = ("core", "ext", "service", "tests", "bench", "ci")
SUFFIXES = (".py", ".pyx", ".pxd", ".sh")
BREAK = r"(?:[ ]|\n[ \t]*(?:\#[ ])?[ \t]*)"
ONE_FILE = re.compile(r"(?P<path>[\w/.-]+\.(?:py|pyx|pxd)): (?P<citation>[^#]+)(?:#(?P<number>\d+))?")


def pattern(citation: str) -> re.Pattern[str]:
    """Return a pattern for the citation and nothing longer: `reference 05, 1.1` is no part of `reference 05, 1.10`."""
    words = [re.escape(word) for word in citation.split(" ")]
    return re.compile(rf"\b{BREAK.join(words)}(?!\.?\d)", re.VERBOSE)


def replaced(text: str, citation: str, rules: str, number: int | None = None) -> str:
    """Return the text with the rules in place of the citation, or of its `number`th occurrence from 1."""
    if number is None:
        return pattern(citation).sub(rules, text)
    matches = list(pattern(citation).finditer(text))
    if len(matches) < number:
        raise SystemExit(f"{citation}: there is no occurrence {number}")
    match = matches[number - 1]
    return text[: match.start()] + rules + text[match.end() :]


def wrapped(line: str) -> str:
    """Return a line of a docstring or comment broken at spaces, with its indentation; any other line as it is."""
    indent = line[: len(line) - len(line.lstrip())]
    comment = line.lstrip().startswith("# ")
    if not comment and ('"' in line.replace('"""', "") or "= " in line.split('"""')[0]):
        return line
    prefix = indent + ("# " if comment else "")
    parts = []
    while len(line) > WIDTH:
        cut = line.rfind(" ", len(prefix) + 1, WIDTH + 1)
        if cut < 0:
            break
        parts.append(line[:cut])
        line = prefix + line[cut + 1 :]
    return "\n".join([*parts, line])


def main(root: Path) -> None:
    pairs = [line.split(" → ") for line in (root / "docs/internals/citations.txt").read_text("utf-8").splitlines()]
    own: dict[str, list[tuple[str, str, int | None]]] = {}
    everywhere = []
    for citation, rules in pairs:
        if match := ONE_FILE.fullmatch(citation):
            number = int(match["number"]) if match["number"] else None
            own.setdefault(match["path"], []).append((match["citation"], rules, number))
        else:
            everywhere.append((citation, rules))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or path.parent.name == "rename":
                continue
            before = text = path.read_text("utf-8")
            # The last occurrence first, so that the numbers of the others stay.
            for citation, rules, number in sorted(
                own.pop(str(path.relative_to(root)), ()), key=lambda one: (-len(one[0]), -(one[2] or 0))
            ):
                text = replaced(text, citation, rules, number)
            for citation, rules in everywhere:
                text = replaced(text, citation, rules)
            if text == before:
                continue
            known = set(before.split("\n"))
            lines = (wrapped(line) if len(line) > WIDTH and line not in known else line for line in text.split("\n"))
            path.write_text("\n".join(lines), "utf-8")
    if own:
        raise SystemExit(f"citations.txt names files that do not exist: {', '.join(own)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
