"""Effects of statements on the automatic HTTP method of a file and on transactions, derived from their keywords alone.

The statements of a file run as if each were sent alone, so that the changes of a statement remain when a later one
fails (sql-files-27). Statements are sent together where this makes no difference: statements that only read are sent
with the next statement that writes, and the statements between BEGIN and COMMIT are one transaction in any case.
"""

from __future__ import annotations

import enum
import re
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
_ALONE = frozenset({"vacuum", "cluster", "reindex", "repack"})
"""First words of statements that PostgreSQL refuses in a transaction block."""
_DEFINITIONS = frozenset({"create", "alter", "drop"})
_OF_CLUSTER = frozenset({"database", "tablespace", "subscription", "system"})
"""Objects outside of a database, whose definitions PostgreSQL refuses to change in a transaction block."""
_PROCEDURE = re.compile(r'\s*call\s+(?:[\w$"]+\s*\.\s*)*"?([\w$]+)"?\s*\(', re.IGNORECASE)
_ENDS_TRANSACTION = re.compile(r"(?:commit|rollback|call)\b", re.IGNORECASE)
"""Words of PL/pgSQL, PL/Python and PL/Tcl, and the end of those of PL/Perl (`spi_commit`)."""


class Effect(enum.Enum):
    """The effect of a statement on its transaction."""

    READ = "read"
    """The statement changes nothing, so that it makes no difference whether it is committed."""
    WRITE = "write"
    BEGIN = "begin"
    END = "end"
    """COMMIT or ROLLBACK of a whole transaction."""
    CHAIN = "chain"
    """Like END, and begins another transaction: `COMMIT AND CHAIN`."""
    ALONE = "alone"
    """The statement may have to be the only one of its transaction, such as VACUUM or a CALL that commits."""


_OWN_TRANSACTION = frozenset({Effect.BEGIN, Effect.END, Effect.CHAIN, Effect.ALONE})


@dataclass(frozen=True, slots=True)
class Suspects:
    """Names, in lower case, of functions and views whose use in a SELECT may change data, and of procedures."""

    functions: frozenset[str] = frozenset()
    """VOLATILE functions."""
    views: frozenset[str] = frozenset()
    """Views that call a VOLATILE function."""
    plain_procedures: frozenset[str] = frozenset()
    """Procedures that cannot commit. All others are suspect."""


def effect(statement: RawStatement, suspects: Suspects) -> Effect:
    """Return the effect of a statement on its transaction; WRITE if it is unknown. A SELECT that uses one of the
    suspects counts as WRITE."""
    words = statement.words
    first = words[0] if words else ""
    if first == "begin" or words[:2] == ("start", "transaction"):
        return Effect.BEGIN
    if first in ("commit", "end", "abort", "rollback") or words[:2] == ("prepare", "transaction"):
        return _effect_of_end(words)
    if first in _READS:
        return Effect.READ if _only_reads(statement, suspects) else Effect.WRITE
    return Effect.ALONE if _may_be_alone(statement, suspects) else Effect.WRITE


def _may_be_alone(statement: RawStatement, suspects: Suspects) -> bool:
    """Return whether the statement may have to be the only one of its transaction. A DO block that names COMMIT,
    ROLLBACK or CALL anywhere may commit."""
    words = statement.words
    first = words[0] if words else ""
    if first == "do":
        return _ENDS_TRANSACTION.search(statement.text) is not None
    if first == "call":
        name = _PROCEDURE.match(statement.text)
        return name is None or name[1].lower() not in suspects.plain_procedures
    if first in _DEFINITIONS:
        return "concurrently" in words or not _OF_CLUSTER.isdisjoint(words[1:2])
    return first in _ALONE or words[:2] == ("discard", "all")


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


def may_commit(effects: Sequence[Effect]) -> bool:
    """Return whether a statement of a file may commit, or needs a transaction of its own. effects: of the
    statements."""
    return not _OWN_TRANSACTION.isdisjoint(effects)


def commits(statement: RawStatement) -> bool:
    """Return whether the statement ends a transaction block other than by a rollback."""
    words = statement.words
    what = _effect_of_end(words) if words[:1] in (("commit",), ("end",)) else None
    return what in (Effect.END, Effect.CHAIN) or words[:2] == ("prepare", "transaction")


def leaves_open(effects: Sequence[Effect]) -> bool:
    """Return whether a file ends within a transaction that it has begun, and contains a write, in this transaction or
    before it. Writes in this transaction are lost. effects: of its statements, in order."""
    about = [what for what in effects if what in (Effect.BEGIN, Effect.END, Effect.CHAIN)]
    return bool(about) and about[-1] is not Effect.END and Effect.WRITE in effects


def execution_plans(
    statements: Sequence[RawStatement], effects: Sequence[Effect], *, wrapped: bool = False
) -> tuple[ExecutionPlan, ...]:
    """Return the execution plan of each statement. The statements up to and including one with `last` are sent
    together.

    effects: of each statement. wrapped: send all statements together, so that they are one implicit transaction. It is
    ignored if the file begins or ends a transaction itself, or if a statement has to be the only one of its
    transaction.
    """
    if wrapped and not may_commit(effects):
        return tuple(_plan_transaction(statements))
    last = [False] * len(effects)
    fresh = [False] * len(effects)
    behind = [False] * len(effects)
    alone = [False] * len(effects)
    # pending: a statement has run in an implicit transaction that has not ended. settings_due: the settings of the
    # request are not yet set in the current transaction.
    in_block = pending = False
    settings_due = True
    ended = False
    for index, (statement, what) in enumerate(zip(statements, effects, strict=True)):
        behind[index] = ended
        if not in_block:
            if what in (Effect.ALONE, Effect.BEGIN) and pending:
                last[index - 1] = settings_due = True
            pending = what not in (Effect.BEGIN, Effect.END, Effect.CHAIN)
            last[index] = what in (Effect.WRITE, Effect.ALONE)
            alone[index] = what is Effect.ALONE
        if what is Effect.BEGIN:
            in_block = settings_due = True
        elif what in (Effect.END, Effect.CHAIN):
            in_block = in_block and what is Effect.CHAIN
            pending = False
            settings_due = ended = True
        elif settings_due and not alone[index] and not _comes_first(statement):
            fresh[index] = True
            settings_due = False
        if last[index]:
            settings_due, pending = True, False
    if last:
        last[-1] = True
    return tuple(ExecutionPlan(*item) for item in zip(last, fresh, behind, alone, strict=True))


def _plan_transaction(statements: Sequence[RawStatement]) -> Iterator[ExecutionPlan]:
    """Yield the plan of each statement, so that all are sent as one transaction."""
    settings_due = True
    for index, statement in enumerate(statements, 1):
        fresh = settings_due and not _comes_first(statement)
        settings_due = settings_due and not fresh
        yield ExecutionPlan(last=index == len(statements), fresh=fresh)


def _comes_first(statement: RawStatement) -> bool:
    """Return whether the statement has to be the first of its transaction."""
    return statement.words[:2] == ("set", "transaction")


def copies_to_client(statement: RawStatement) -> bool:
    """Return whether the statement is `COPY … FROM STDIN` or `COPY … TO STDOUT`. COPY with a file of the server is
    allowed."""
    words = statement.words
    return words[:1] == ("copy",) and not {("from", "stdin"), ("to", "stdout")}.isdisjoint(pairwise(words))


def is_hidden(statement: RawStatement) -> bool:
    """Return whether the statement is a command without a result of its own (`SkipNonQueryCommands`)."""
    return bool(statement.words) and statement.words[0] in HIDDEN


def automatic_method(statements: Sequence[RawStatement]) -> str:
    """Return the HTTP method for the strongest change that a file mentions outside of strings and comments: DELETE for
    `delete`, POST for `update`, PUT for `insert`, else GET (sql-files-7). A file with a DO block gets POST."""
    if any(statement.do_block for statement in statements):
        return "POST"
    words = {word for statement in statements for word in (*statement.words, *statement.quoted_words)}
    for word, method in (("delete", "DELETE"), ("update", "POST"), ("insert", "PUT")):
        if word in words:
            return method
    return "GET"
