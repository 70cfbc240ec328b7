"""Renames modules and identifiers to the terms of the glossary, in one mechanical step (issue 32, point 1).

    python ci/rename/rename_terms.py ROOT

ROOT is a checkout without other changes and without other branches in progress. The rules stand in `terms.txt` beside
this file; what they rename is checked by mypy, the build and the tests afterwards. Prose is not touched. Remove this
folder once the rename has landed.

A rule is one line; globs name files by their new paths and limit a rule to these and to the files that import the name
from them:

    move OLD NEW               a file or a folder (`git mv`), and every reference to it, dotted or as a path
    before OLD NEW [GLOB ...]  text, as whole words, before the identifiers are renamed
    name OLD NEW [GLOB ...]    an identifier, outside of strings and comments
    after OLD NEW [GLOB ...]   text, as whole words, after that
"""

from __future__ import annotations

import fnmatch
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

TERMS = Path(__file__).with_name("terms.txt")
LAYERS = ("core", "ext", "service")
CODE = (".py", ".pyx", ".pxd", ".pyi")
TEXT = (*CODE, ".md", ".toml", ".sh", ".json", ".cfg", ".in", ".yaml", ".yml", ".sql", ".h", ".c", "Makefile")
WORD = re.compile(r"[A-Za-z_]\w*")
STRING = r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
CYTHON = re.compile(
    rf"((?m:^from [\w.]+ c?import)|#[^\n]*)|([fFrRbBuU]*)({STRING})|([A-Za-z_]\w*)",
    re.DOTALL,
)
SLOTS = re.compile(r"__slots__ = \([^)]*\)")
IMPORT = re.compile(r"from rowcall\.([\w.]+) c?import (\([^)]*\)|[^\n]*)", re.DOTALL)
ANNOTATION = re.compile(r'((?:->|:|\[|,|cast\()\s*")([A-Z][\w\[\], .|]*)(")')
"""A type in quotes."""

Names = dict[str, str]


class Rule(NamedTuple):
    old: str
    new: str
    globs: tuple[str, ...]

    def is_for(self, file: str) -> bool:
        return not self.globs or any(fnmatch.fnmatch(file, glob) for glob in self.globs)


def read_rules() -> dict[str, list[Rule]]:
    rules: dict[str, list[Rule]] = {"move": [], "before": [], "name": [], "after": []}
    for line in TERMS.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words:
            kind, old, new, *globs = words
            rules[kind].append(Rule(old, new, tuple(globs)))
    return rules


class Checkout:
    """The files of a git work tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def files(self, suffixes: tuple[str, ...]) -> list[str]:
        return [
            name for name in self.git("ls-files").split() if name.endswith(suffixes) and (self.root / name).exists()
        ]

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        if text != self.read(name):
            (self.root / name).write_text(text, encoding="utf-8")


# --- moves ------------------------------------------------------------------------------------------------------------


def move(checkout: Checkout, rules: Iterable[Rule]) -> None:
    """Move files and folders, and rewrite what refers to them, history and measurements aside."""
    references: list[tuple[re.Pattern[str], str]] = []
    for rule in rules:
        if not (checkout.root / rule.old).exists():
            print(f"not found: {rule.old}")
            continue
        (checkout.root / rule.new).parent.mkdir(parents=True, exist_ok=True)
        checkout.git("mv", rule.old, rule.new)
        for suffix in (".pxd", ".pyi"):
            beside = Path(rule.old).with_suffix(suffix)
            if rule.old.endswith(".pyx") and (checkout.root / beside).exists():
                checkout.git("mv", str(beside), str(Path(rule.new).with_suffix(suffix)))
        references += references_to(rule)
    for name in checkout.files(TEXT):
        if name != "CHANGELOG.md" and not name.startswith(("bench/results", "ci/rename")):
            text = checkout.read(name)
            for pattern, new in references:
                text = pattern.sub(new, text)
            checkout.write(name, text)


def references_to(rule: Rule) -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield patterns for the ways to write a path, and what replaces them."""
    old, new = (re.sub(r"\.(py|pyx)$", "", path) for path in (rule.old, rule.new))
    dotted, renamed = old.replace("/", "."), new.replace("/", ".")
    if old.split("/")[0] in LAYERS:
        yield re.compile(rf"(?<!\w)rowcall\.{re.escape(dotted)}(?!\w)"), f"rowcall.{renamed}"
        yield re.compile(rf"(?<![\w/.]){re.escape(dotted)}(?!\w)"), renamed
        (above, name), (new_above, new_name) = dotted.rsplit(".", 1), renamed.rsplit(".", 1)
        pattern = re.compile(rf"from rowcall\.{re.escape(above)} (c?import) {name}\b(?!,)")
        yield pattern, rf"from rowcall.{new_above} \1 {new_name}"
    yield re.compile(rf"(?<!\w){re.escape(old)}(?!\w)"), new


# --- names ------------------------------------------------------------------------------------------------------------


def replace_texts(checkout: Checkout, rules: Iterable[Rule]) -> None:
    for name in checkout.files(CODE):
        text = checkout.read(name)
        for rule in rules:
            if rule.is_for(name):
                text = re.sub(rf"(?<!\w){re.escape(rule.old)}(?!\w)", rule.new, text)
        checkout.write(name, text)


def rename(checkout: Checkout, rules: Iterable[Rule]) -> None:
    rules = list(rules)
    for name in checkout.files(CODE):
        text = checkout.read(name)
        names = names_for(name, text, rules)
        renamed = in_python(text, names, name.startswith("tests/")) if name.endswith(".py") else in_cython(text, names)
        checkout.write(name, in_quoted_types(renamed, {old: new for old, new in names.items() if old[0].isupper()}))


def in_quoted_types(text: str, names: Names) -> str:
    return ANNOTATION.sub(lambda match: match[1] + words(match[2], names) + match[3], text)


def names_for(name: str, text: str, rules: Iterable[Rule]) -> Names:
    """Return the names that the rules rename in a file. A rule with globs wins over one without."""
    imported = [
        (match[1].replace(".", "/"), word) for match in IMPORT.finditer(text) for word in WORD.findall(match[2])
    ]
    names: Names = {}
    for rule in rules:
        distinct = rule.old[0].isupper() or "_" in rule.old or len(rule.old) > 5
        follows = distinct and any(
            word == rule.old and (rule.is_for(f"{module}.py") or rule.is_for(f"{module}.pyx"))
            for module, word in imported
        )
        if not rule.globs:
            names.setdefault(rule.old, rule.new)
        elif rule.is_for(name) or follows:
            names[rule.old] = rule.new
    return names


def words(text: str, names: Names) -> str:
    return WORD.sub(lambda match: names.get(match[0], match[0]), text)


def in_cython(text: str, names: Names) -> str:
    def replace(match: re.Match[str]) -> str:
        comment, prefix, string, word = match.groups()
        if comment:
            return match[0]
        if string is not None:
            return prefix + (in_fstring(string, names) if "f" in prefix.lower() else string)
        return names.get(word, word)

    return CYTHON.sub(replace, text)


def in_python(text: str, names: Names, is_test: bool) -> str:
    slots: set[int] = set()
    for match in SLOTS.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        slots.update(range(first, first + match[0].count("\n") + 1))
    edits = []
    in_from = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        new = token.string
        if token.type == tokenize.NAME:
            if new == "from" and not token.line[: token.start[1]].strip():
                in_from = True
            elif new == "import":
                in_from = False
            elif not in_from:
                new = names.get(new, new)
        elif token.type == tokenize.STRING:
            new = in_string(token.string, names, is_test=is_test, is_slot=token.start[0] in slots)
        if new != token.string:
            edits.append((token.start, token.end, new))
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for (row, column), (end_row, end_column), new in reversed(edits):
        text = text[: starts[row - 1] + column] + new + text[starts[end_row - 1] + end_column :]
    return text


def in_string(string: str, names: Names, *, is_test: bool, is_slot: bool) -> str:
    """Rename in slots, in the braces of f-strings, and, in tests, in names and programs that are given as text."""
    prefix = re.match("[A-Za-z]*", string)[0].lower()  # type: ignore[index]
    content = string.strip('"')
    if is_slot and content in names:
        return f'"{names[content]}"'
    if is_test and content in names and (content[0].isupper() or content.startswith("_")):
        return f'"{names[content]}"'
    if is_test and content.startswith("rowcall."):
        module, _, name = content.rpartition(".")
        if name in names and name[0].isupper():
            return f'"{module}.{names[name]}"'
    if "import rowcall" in string or "from rowcall" in string:
        return words(string, names)
    return in_fstring(string, names) if "f" in prefix else string


def in_fstring(string: str, names: Names) -> str:
    """Rename within the braces, strings there aside."""
    parts, place = [], 0
    while place < len(string):
        if string.startswith("{{", place) or string[place] != "{":
            width = 2 if string.startswith("{{", place) else 1
            parts.append(string[place : place + width])
            place += width
            continue
        end = closing_brace(string, place)
        pieces = re.split(r'("[^"]*"|\'[^\']*\')', string[place + 1 : end])
        parts += ["{", *(piece if number % 2 else words(piece, names) for number, piece in enumerate(pieces)), "}"]
        place = end + 1
    return "".join(parts)


def closing_brace(string: str, start: int) -> int:
    depth, quote = 0, ""
    for place in range(start, len(string)):
        character = string[place]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
            if depth == 0:
                return place
    return len(string)


def main(root: Path) -> None:
    checkout = Checkout(root)
    rules = read_rules()
    move(checkout, rules["move"])
    replace_texts(checkout, rules["before"])
    rename(checkout, rules["name"])
    replace_texts(checkout, rules["after"])
    ruff = str(root / ".venv" / "bin" / "ruff")
    folders = [*LAYERS, "tests", "bench", "ci"]
    subprocess.run([ruff, "check", "-q", "--select", "I,RUF022", "--fix", *folders], cwd=root, check=False)
    subprocess.run([ruff, "format", "-q", *folders], cwd=root, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
