"""Retired words occur neither in identifiers nor in docstrings, comments, messages and pages.

`docs/internals/glossary.md` has the words that replace them. A word is found inside identifiers too: `tell` in
`tell_waiters`, `TellWaiters` and `TELL`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = ("bench", "ci", "core", "docs", "examples", "ext", "service", "tests")

GLOSSARY = "docs/internals/glossary.md"
THIS_FILE = "tests/test_vocabulary.py"

WORDS = frozenset(
    (
        *("anybody", "bell", "discreet", "doubts", "edition", "editions", "errand", "errands", "everybody"),
        *("exchange", "exchanges", "flights", "goodbye", "hearer", "hearers", "lane", "lanes", "leftover"),
        *("leftovers", "mourn", "mourning", "needless", "nobody", "patience", "predecessor", "predecessors"),
        *("ringer", "somebody", "stranger", "strangers", "tell", "teller", "tellers", "telling", "tells", "told"),
        *("unheard", "untold", "whoever"),
    )
)
PHRASES = ("as it were", "gives way", "give way", "own path")


class Exempt(NamedTuple):
    """A retired word that may occur in a file."""

    file: str
    word: str
    reason: str


EXCEPTIONS = (
    Exempt("core/cache/redis_address.py", "exchange", "StackExchange.Redis is the name of a library"),
    Exempt("core/config/table.py", "goodbye", "a former name of a key, which is accepted"),
    Exempt("core/config/table.py", "patience", "a former name of a key, which is accepted"),
    Exempt("tests/core/config/test_loading.py", "goodbye", "a former name of a key, which is accepted"),
    Exempt("tests/http/test_rehearsal.py", "patience", "a former name of a key, which is accepted"),
    Exempt("CHANGELOG.md", "goodbye", "a former name of a key, which is accepted"),
    Exempt("CHANGELOG.md", "patience", "a former name of a key, which is accepted"),
    Exempt("core/operations/exposition.py", "exchanges", "a former name of a metric, which is served"),
    Exempt("service/response/formats/parquet.py", "tell", "a method of files in Python"),
    Exempt("tests/http/test_metrics.py", "exchanges", "a former name of a metric, which is served"),
    Exempt("CHANGELOG.md", "exchanges", "a former name of a metric, which is served"),
    Exempt("service/worker/application.py", "lane", "a label of metrics, which dashboards of users name"),
    Exempt("tests/http/test_metrics.py", "lane", "a label of metrics, which dashboards of users name"),
    Exempt("docs/metrics-and-traces.md", "lane", "a label of metrics, which dashboards of users name"),
    Exempt("docs/caching.md", "exchange", "StackExchange.Redis is the name of a library"),
    Exempt("bench/postgres.py", "nobody", "an account of Unix"),
    Exempt("ext/response_cache/robust_lock.h", "exchange", "compare and exchange is an atomic operation of C"),
    Exempt("service/console/load.py", "lane", "a label of metrics, which dashboards of users name"),
    Exempt("examples/grafana-dashboard.json", "lane", "a label of metrics, which dashboards of users name"),
    Exempt("service/console/assets/sign-in.js", "exchanges", "to exchange a token is a term of OAuth 2 (RFC 8693)"),
)

PARTICIPLES = frozenset(
    (
        *(
            "asked",
            "bound",
            "built",
            "cut",
            "found",
            "given",
            "held",
            "hidden",
            "kept",
            "known",
            "left",
            "lost",
            "made",
        ),
        *("meant", "sent", "shown", "spelled", "taken", "wanted", "written"),
    )
)
ADVERBS = frozenset(
    (
        *("again", "ahead", "alone", "anew", "anything", "apart", "around", "before", "behind", "below", "beside"),
        *("between", "inside", "later", "nothing", "now", "once", "one", "other", "others", "outside", "own", "then"),
        *("there", "together", "within"),
    )
)
NOUNS = frozenset(
    ("binding", "embed", "feed", "listing", "meaning", "ring", "seed", "setting", "string", "tracing", "warning")
)
"""Words that end like participles."""
SHARED_NAMES = {
    "done": "asyncio.Task and asyncio.Future have it, beside which these objects are used",
}
"""Functions that are named like those of a library."""

_SUFFIXES = {
    *(".py", ".pyx", ".pxd", ".pyi", ".md", ".sh", ".sql", ".ts", ".js", ".mjs", ".html", ".css", ".json", ".svg"),
    *(".toml", ".yaml", ".yml", ".service", ".socket", ".txt", ".h", ".c"),
}
_NEVER_EDITED = re.compile(r"service/installation/\d{3}-[a-z-]+\.sql")
"""Installed steps of the schema `rowcall`."""
_FUNCTION = re.compile(r"^[ \t]*((?:@[^\n]*\n[ \t]*)*)(?:async )?(?:def|cdef|cpdef)\b[^(\n=]*?\b(\w+)\(", re.MULTILINE)
_ESCAPE = re.compile(r"\\[nrt]")
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PHRASE = re.compile(rf"\b(?:{'|'.join(map(re.escape, PHRASES))})", re.IGNORECASE)
_SPELLINGS = frozenset(form for word in WORDS for form in (word, word.capitalize(), word.upper()))


def test_retired_words_do_not_occur() -> None:
    places = [
        f"{name}:{number}: {word}"
        for name in files()
        for number, word in retired_words((ROOT / name).read_text())
        if not any((item.file, item.word) == (name, word) for item in EXCEPTIONS)
    ]
    assert places == [], f"{len(places)} retired words; {GLOSSARY} has the terms to use"


def test_exceptions_are_few_and_needed() -> None:
    assert len(EXCEPTIONS) <= 20
    for item in EXCEPTIONS:
        words = {word for _, word in retired_words((ROOT / item.file).read_text())}
        assert item.word in words, f"{item.file} no longer has {item.word}; remove the exception"


def test_retired_words_are_found_in_every_spelling() -> None:
    text = "a = tell_all()\nclass TellAll: ...\nTELL = 1\n# As it were.\nretell, tellurium, unknown path\n\\ntold\n"
    assert [*retired_words(text)] == [(1, "tell"), (2, "tell"), (3, "tell"), (4, "as it were"), (6, "told")]


def test_functions_are_named_by_what_they_do() -> None:
    """A participle, an adverb or a pronoun says neither what a function does nor what it returns. Properties may be
    participles: `finished`."""
    places = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("core", "ext", "service")
        for path in sorted((ROOT / folder).rglob("*.py*"))
        if path.suffix in (".py", ".pyx")
        for name in function_names(path.read_text())
        if says_nothing(name) and name not in SHARED_NAMES
    ]
    assert places == []


def test_names_that_say_nothing_are_found() -> None:
    vague = ["_named", "alone", "one_line", "_taking", "shown"]
    clear = ["format_value", "signed_url", "setting", "__missing__"]
    assert [name for name in (*vague, *clear) if says_nothing(name)] == vague


def says_nothing(name: str) -> bool:
    """Return whether a name is a participle alone, or begins with a word that cannot stand alone."""
    first, _, rest = name.strip("_").partition("_")
    if name.startswith("__") or first in NOUNS:
        return False
    is_participle = first in PARTICIPLES or re.fullmatch(r"[a-z]+(?:ed|ing)", first) is not None
    return first in ADVERBS or (is_participle and not rest)


def function_names(text: str) -> Iterator[str]:
    """Yield the names of the functions and methods of a module, without properties."""
    for decorators, name in _FUNCTION.findall(text):
        if "property" not in decorators and ".setter" not in decorators:
            yield name


def files() -> Iterator[str]:
    paths = (*ROOT.glob("*.*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")))
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in _SUFFIXES or name in (GLOSSARY, THIS_FILE) or _NEVER_EDITED.fullmatch(name):
            continue
        # Cython writes a file of C for each of its modules. The packages of the benchmark's peer in Node are not ours.
        is_generated = path.suffix == ".c" and path.with_suffix(".pyx").exists()
        if not is_generated and "node_modules" not in path.parts and path.is_file():
            yield name


def retired_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the line and the word for each retired word. An escape such as `\\n` is no part of it."""
    text = _ESCAPE.sub("  ", text)
    if _SPELLINGS.isdisjoint(_PIECES.findall(text)) and not _PHRASE.search(text):
        return
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, piece.lower()) for piece in _PIECES.findall(line) if piece in _SPELLINGS)
        yield from ((number, match[0].lower()) for match in _PHRASE.finditer(line))
