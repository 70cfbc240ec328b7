"""Annotations of `.sql` files only: skip, result, returns, define_param (sql-files-12 to sql-files-20).

They apply to a single statement or to parameters that the SQL does not use. `core.sqlfile.statement_comments` reads
them. In the comment of a database object such a line is prose.
"""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation

SKIP = Annotation(
    name="skip",
    aliases=("skip", "skip_result", "no_result"),
    syntax="skip",
    description="In a file: runs the statement without including its result in the response.",
    in_files=True,
)

RESULT = Annotation(
    name="result",
    aliases=("result",),
    syntax="result [is] <name>",
    description="In a file of several statements: name of the result of this statement in the response.",
    in_files=True,
)

RETURNS = Annotation(
    name="returns",
    aliases=("returns",),
    syntax="returns void|<type>",
    description="In a file: the result of the statement, if PostgreSQL cannot describe it before it runs.",
    in_files=True,
)

DEFINE_PARAM = Annotation(
    name="define_param",
    aliases=("define_param",),
    syntax="define_param <name> [<type>]",
    description="In a file: a parameter for placeholders that requests may supply and the SQL does not use.",
    in_files=True,
)

ANNOTATIONS = (SKIP, RESULT, RETURNS, DEFINE_PARAM)
