"""Scans SQL or PL/pgSQL text for session effects and for the names that it uses, by its tokens alone.

The result errs on the safe side: an ambiguous token counts as an effect. Names count without their schema and
regardless of their meaning: a column that has the name of a function counts as a call of that function. So a result
without effects can be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowcall.core.catalogue.session_effects import SessionEffect
from rowcall.core.text.sql_lexer import Kind, tokens

_LOCKS = frozenset(
    {"pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock", "pg_try_advisory_lock_shared"}
)
_SEQUENCE_READERS = frozenset({"currval", "lastval"})
_TEMPORARY = frozenset({"temp", "temporary"})
# Built-in functions and commands that run SQL from a text, or change the session in other ways.
_OPAQUE = frozenset(
    {
        "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml", "cursor_to_xmlschema",
        "table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema", "schema_to_xml", "schema_to_xmlschema",
        "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xmlschema", "database_to_xml_and_xmlschema",
        "ts_stat", "ts_rewrite", "pg_backup_start", "pg_start_backup", "execute", "discard", "load", "dblink",
    }
)  # fmt: skip
_OPAQUE_BEGINNINGS = ("pg_replication_", "pg_create_", "pg_copy_", "binary_upgrade_", "pg_restore_", "set_config_by_")
_WORDS = {
    **dict.fromkeys(_LOCKS, SessionEffect.LOCKS),
    **dict.fromkeys(_OPAQUE, SessionEffect.ANYTHING),
    **dict.fromkeys(_TEMPORARY, SessionEffect.TEMPORARY),
    "listen": SessionEffect.CHANNELS,
    "hold": SessionEffect.CURSORS,
    "prepare": SessionEffect.STATEMENTS,
    "deallocate": SessionEffect.STATEMENTS,
    "setseed": SessionEffect.SEED,
}
_COMMANDS = frozenset(
    {
        "alter", "cluster", "comment", "drop", "grant", "import", "reassign", "refresh", "reindex", "repack", "revoke",
        "security", "vacuum", "create",
    }
)  # fmt: skip
"""First words of commands that change the catalogue, so that event triggers may run, or that run code which the
catalogue contains."""
_WRITES = frozenset({"insert", "update", "delete", "merge", "truncate", "copy"})
_OPENERS = frozenset({"begin", "then", "else", "loop", "do", "atomic"})
"""Words after which a statement may begin."""
_LOCAL = frozenset({"true", "'true'", "'t'", "'on'", "'yes'", "'1'"})
_QUOTES = re.compile(r'""')


@dataclass(frozen=True, slots=True)
class Scan:
    """The session effects and names that a text contains."""

    traces: frozenset[SessionEffect] = frozenset()
    reads_sequences: bool = False
    writes: bool = False
    """The text may change a table."""
    names: frozenset[str] = field(default_factory=frozenset)
    """All identifiers, unquoted ones in lower case."""


def scan(text: str) -> Scan:
    """Return the session effects that a text of SQL or PL/pgSQL may have by its own words, and the names that it
    contains. If its effects are unknown (`SessionEffect.ANYTHING`), it also counts as reading sequences and as writing.
    """
    result = _significant(text)
    traces: set[SessionEffect] = set()
    names: set[str] = set()
    reads = False
    behind = True
    for index, (kind, word) in enumerate(result):
        if kind in (Kind.WORD, Kind.QUOTED_NAME):
            names.add(word)
            trace = _WORDS.get(word)
            if trace is not None:
                traces.add(trace)
            elif word in _SEQUENCE_READERS:
                reads = True
            elif word == "set_config":
                if not _is_local(result, index):
                    traces.add(SessionEffect.SETTINGS)
            elif word.startswith("pg_temp"):
                traces.add(SessionEffect.TEMPORARY)
            elif word.startswith(_OPAQUE_BEGINNINGS):
                traces.add(SessionEffect.ANYTHING)
            if behind and kind is Kind.WORD:
                traces.update(_of_statement(result, index))
            behind = word in _OPENERS and kind is Kind.WORD
        else:
            if word == "\0":
                traces.add(SessionEffect.ANYTHING)
            behind = kind is Kind.SEMICOLON or word.endswith(">>")
    if "pg_settings" in names and "update" in names:
        traces.add(SessionEffect.SETTINGS)
    opaque = SessionEffect.ANYTHING in traces
    return Scan(frozenset(traces), reads or opaque, opaque or not names.isdisjoint(_WRITES), frozenset(names))


def _significant(text: str) -> list[tuple[Kind, str]]:
    """Return kind and text of each token that is neither blank nor a comment, with words in lower case, and quoted
    names without their quotes. A named placeholder counts as a word, because in a slice, `a[1:n]`, it is an identifier.
    An ambiguous token (a quoted name with `U&`, an unclosed comment) has NUL as its text."""
    result: list[tuple[Kind, str]] = []
    for kind, start, end in tokens(text):
        if kind in (Kind.SPACE, Kind.LINE_COMMENT, Kind.BLOCK_COMMENT):
            continue
        word = text[start:end]
        if kind is Kind.WORD:
            word = word.lower()
        elif kind is Kind.QUOTED_NAME:
            if word[0] in "uU":
                kind, word = Kind.OTHER, "\0"
            else:
                word = _QUOTES.sub('"', word[1:-1])
        elif kind is Kind.NAMED:
            # In a slice, `a[1:n]`, the lexer's named placeholder is an identifier behind a colon.
            kind, word = Kind.WORD, word[1:].lower()
        elif kind is Kind.OTHER:
            word = word.strip()
            if not word:
                continue
            if word.startswith("/*"):
                word = "\0"
        result.append((kind, word))
    return result


def _is_local(tokens: Sequence[tuple[Kind, str]], index: int) -> bool:
    """Return whether the third argument of the `set_config` at `index` limits the setting to the transaction. False if
    the argument is anything else than a literal for true."""
    depth = 0
    arguments: list[list[str]] = [[]]
    for _, word in tokens[index + 1 :]:
        if depth == 0 and word != "(":
            return False
        if word == "(":
            depth += 1
            if depth == 1:
                continue
        elif word == ")":
            depth -= 1
            if depth == 0:
                break
        if depth == 1 and "," in word and word[0] not in "'\"$":
            pieces = word.split(",")
            arguments[-1].append(pieces[0].strip())
            arguments += [[piece.strip()] for piece in pieces[1:]]
        else:
            arguments[-1].append(word)
    else:
        return False
    if len(arguments) != 3:
        return False
    last = [word for word in arguments[2] if word]
    if last[:1] == ["is_local"]:
        last = [word for word in last[1:] if word not in (":=", "=>", "=", ">")]
    return len(last) == 1 and last[0].lower() in _LOCAL


def _of_statement(tokens: Sequence[tuple[Kind, str]], index: int) -> set[SessionEffect]:
    """Return the session effects of a statement that begins with the word at `index`, by that word and the next
    ones; empty if the word begins no statement with effects."""
    word = tokens[index][1]
    following = [text for _, text in tokens[index + 1 : index + 4]]
    second = following[0].lower() if following else ""
    if second.startswith((":=", "=", ".", "[")):
        return set()  # an assignment to a variable of that name
    if word == "set":
        if second == "session" and following[1:2] and following[1].lower() == "characteristics":
            return {SessionEffect.SETTINGS}
        named = "".join(following[1:2]).startswith(".")  # `local .x` is the name of a setting
        ends = second in ("local", "transaction", "constraints") and not named
        return set() if ends else {SessionEffect.SETTINGS}
    if word == "reset":
        return {SessionEffect.SETTINGS}
    if word == "do" and index + 1 < len(tokens):
        kind = tokens[index + 1][0]
        opaque = kind in (Kind.STRING, Kind.DOLLAR_STRING) or second == "language"
        return {SessionEffect.ANYTHING} if opaque else set()
    if word == "comment" and second != "on":
        return set()  # a variable
    if word == "create":
        rest = [text.lower() for text in following]
        if _TEMPORARY.intersection(rest):
            return {SessionEffect.TEMPORARY}
        return {SessionEffect.ANYTHING}
    return {SessionEffect.ANYTHING} if word in _COMMANDS else set()
