"""Functions and procedures with their comments, one in each line, as in tables of tests."""

from __future__ import annotations

from collections.abc import Iterable

Routine = tuple[str, str, str]
"""`(head, body, comment)`; the head is the text between `create` and `as`."""


def routines(rows: Iterable[Routine]) -> str:
    """Return the SQL that creates and comments them."""
    return "".join(_routine(*row) for row in rows)


def _routine(head: str, body: str, comment: str) -> str:
    language = "" if " language " in head else " language sql"
    kind = "" if head.startswith(("procedure ", "function ")) else "function "
    quoted = comment.replace("'", "''")
    # The latest routine has the highest oid, so the comment of an overload needs no repetition of its types.
    return (
        f"create {kind}{head}{language} as $body${body}$body$;\n"
        "do $do$ begin execute format('comment on routine %s is %L',"
        f" (select oid::regprocedure from pg_proc order by oid desc limit 1), '{quoted}'); end $do$;\n"
    )
