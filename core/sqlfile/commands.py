"""What statements do to the automatic method of a file, and to transactions: judged by their words alone.

Statements of a file run as if each were sent alone, so that what one has done stays when a later one fails
(sql-files-27). They still travel together wherever nobody could tell: those that only read join the next one that
writes, and
what stands between BEGIN and COMMIT is one transaction anyway.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rowcall.core.sqlfile.execution import ExecutionPlan
from rowcall.core.sqlfile.splitting import RawStatement

HIDDEN = frozenset(
    {
        "begin", "commit", "end", "rollback", "savepoint", "release", "set", "reset", "discard", "lock", "listen",
        "notify", "deallocate", "do",
    }
)  # fmt: skip
"""First words of commands that have no result of their own (`SkipNonQueryCommands`)."""

_READS = frozenset({"select", "values", "table", "with", "show", "explain"})
_CHANGES = frozenset({"insert", "update", "delete", "merge"})
_NOT_READ_ONLY = _CHANGES | {"into", "share"}
_SESSION = frozenset(
    {"set", "reset", "savepoint", "release", "lock", "listen", "unlisten", "notify", "deallocate", "prepare", "execute",
     "declare", "fetch", "move", "close"}
)  # fmt: skip


class Effect(enum.Enum):
    READ = "read"
    """Changes nothing: nobody can tell whether it was committed."""
    WRITE = "write"
    BEGIN = "begin"
    END = "end"
    """COMMIT or ROLLBACK of a whole transaction."""
    CHAIN = "chain"
    """The same, and another transaction begins with it."""
    ALONE = "alone"
    """May have to be the only statement of its transaction: VACUUM, a CALL that commits …"""


@dataclass(frozen=True, slots=True)
class Suspects:
    """What may change something although it is only read, in lower case."""

    functions: frozenset[str] = frozenset()
    """VOLATILE ones."""
    views: frozenset[str] = frozenset()
    """Those that call such a function."""


def effect(statement: RawStatement, suspects: Suspects) -> Effect:
    words = statement.words
    first = words[0] if words else ""
    if first == "begin" or words[:2] == ("start", "transaction"):
        return Effect.BEGIN
    if first in ("commit", "end", "abort", "rollback") or words[:2] == ("prepare", "transaction"):
        return _effect_of_end(words)
    if first in _READS:
        return Effect.READ if _only_reads(statement, suspects) else Effect.WRITE
    if first in _CHANGES or first in _SESSION:
        return Effect.WRITE
    # A bracket in front, as in `(select 1) union …`, is no word.
    return Effect.ALONE


def _only_reads(statement: RawStatement, suspects: Suspects) -> bool:
    names = suspects.views
    return (
        _NOT_READ_ONLY.isdisjoint(statement.words)
        and suspects.functions.isdisjoint(statement.called)
        and names.isdisjoint(statement.words)
        and names.isdisjoint(statement.quoted_words)
    )


def _effect_of_end(words: Sequence[str]) -> Effect:
    if "to" in words:
        return Effect.WRITE
    if "chain" in words and "no" not in words:
        return Effect.CHAIN
    return Effect.ALONE if "prepared" in words else Effect.END


def leaves_open(effects: Sequence[Effect]) -> bool:
    """A transaction that writes is begun and not ended: nothing that it has done stays."""
    about = [what for what in effects if what in (Effect.BEGIN, Effect.END, Effect.CHAIN)]
    return bool(about) and about[-1] is not Effect.END and Effect.WRITE in effects


def execution_plans(
    statements: Sequence[RawStatement], effects: Sequence[Effect], *, wrapped: bool = False
) -> tuple[ExecutionPlan, ...]:
    """Statements up to one that is `last` are sent together.

    wrapped: all are one transaction, unless the file begins or ends one itself, or something in it has to stand alone.
    """
    if wrapped and not {Effect.ALONE, Effect.BEGIN, Effect.END, Effect.CHAIN}.intersection(effects):
        return tuple(_one_transaction(statements, effects))
    last = [False] * len(effects)
    fresh = [False] * len(effects)
    behind = [False] * len(effects)
    in_block = pending = False
    """pending: something has run in a transaction that nobody has begun."""
    unsaid = True
    ended = False
    for index, (statement, what) in enumerate(zip(statements, effects, strict=True)):
        behind[index] = ended
        if not in_block:
            if what in (Effect.ALONE, Effect.BEGIN) and pending:
                last[index - 1] = unsaid = True
            pending = what not in (Effect.BEGIN, Effect.END, Effect.CHAIN)
            last[index] = what in (Effect.WRITE, Effect.ALONE)
        if what is Effect.BEGIN:
            in_block = unsaid = True
        elif what in (Effect.END, Effect.CHAIN):
            in_block = in_block and what is Effect.CHAIN
            pending = False
            unsaid = ended = True
        elif unsaid and not _comes_first(statement, what):
            fresh[index] = True
            unsaid = False
        if last[index]:
            unsaid, pending = True, False
    if last:
        last[-1] = True
    return tuple(ExecutionPlan(*item) for item in zip(last, fresh, behind, strict=True))


def _one_transaction(statements: Sequence[RawStatement], effects: Sequence[Effect]) -> Iterator[ExecutionPlan]:
    unsaid = True
    for index, (statement, what) in enumerate(zip(statements, effects, strict=True), 1):
        fresh = unsaid and not _comes_first(statement, what)
        unsaid = unsaid and not fresh
        yield ExecutionPlan(last=index == len(statements), fresh=fresh)


def _comes_first(statement: RawStatement, what: Effect) -> bool:
    """Nothing may run in its transaction before it."""
    return what is Effect.ALONE or statement.words[:2] == ("set", "transaction")


def copies_to_client(statement: RawStatement) -> bool:
    """`COPY … FROM STDIN` or `COPY … TO STDOUT`; files of the server are its own business."""
    words = statement.words
    return words[:1] == ("copy",) and not {("from", "stdin"), ("to", "stdout")}.isdisjoint(pairwise(words))


def is_hidden(statement: RawStatement) -> bool:
    return bool(statement.words) and statement.words[0] in HIDDEN


def automatic_method(statements: Sequence[RawStatement]) -> str:
    """By the strongest change that is mentioned anywhere (sql-files-7)."""
    if any(statement.do_block for statement in statements):
        return "POST"
    words = {word for statement in statements for word in (*statement.words, *statement.quoted_words)}
    for word, method in (("delete", "DELETE"), ("update", "POST"), ("insert", "PUT")):
        if word in words:
            return method
    return "GET"
