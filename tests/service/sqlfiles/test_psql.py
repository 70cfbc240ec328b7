"""PostgreSQL is the judge of the splitter: a file split by us and run statement by statement does what `psql -f` does.

With one exception, where psql disagrees with the server: psql reads line by line, and does not see that an E string
goes on behind a line break.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.sqlfile.splitting import split
from tests.harness.database import Database
from tests.harness.effort import examples

TEXTS = st.sampled_from(
    ["'a;b'", "'it''s -- x'", r"E'\';\\'", "$$ ; ' $$", "$q$ $$;$$ $q$", "U&'d\\0061;'", "'/*'", "''"]
)
COMMENTS = st.sampled_from(["-- a;b\n", "/* ; */", "/* /* ' */ ; */", "--'\n", "/*$$*/", "\n", " ", "-- $q$\r\n"])
INSERT = st.builds("insert into seen (v) values{}({}{})".format, COMMENTS, TEXTS, COMMENTS)
ATOMIC = st.builds(
    "create or replace function note() returns void begin atomic insert into seen (v) values ({}); "
    "insert into seen (v) select case when true then {} end; end{};\nselect note()".format,
    TEXTS,
    TEXTS,
    COMMENTS,
)
BLOCK = st.builds("do $do$ begin insert into seen (v) values ({}); end $do$".format, TEXTS)
QUOTED = st.builds('insert into seen (v) select "a;\'--" from (select {}) as x("a;\'--")'.format, TEXTS)
RULE = st.just("create or replace rule two as on delete to seen do also (select 1; select 2)")
BROKEN = st.sampled_from(["select 1/0", "nonsense", "select )", "insert into nowhere values (1)"])
STATEMENT = st.one_of(INSERT, INSERT, ATOMIC, BLOCK, QUOTED, RULE, BROKEN)
FILE = st.lists(st.builds("{}{}{}".format, COMMENTS, STATEMENT, COMMENTS), max_size=6).map(";".join)
PIECES = st.lists(
    st.sampled_from(
        ["'", '"', "$$", "$a$", "--", "/*", "*/", ";", "\n", "(", ")", " ", "E'", "begin", "end", "create function",
         "insert into seen (v) values ('x')", "insert into seen (v) values ($$y$$)", "a"]
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


class Judge:
    """Runs one text both ways on one database."""

    def __init__(self, database: Database, path: Path) -> None:
        self._database = database
        self._path = path
        self._connection = psycopg.connect(database.conninfo, autocommit=True)
        self._connection.execute("create table seen (id int generated always as identity, v text)")

    def close(self) -> None:
        self._connection.close()

    def check(self, text: str) -> None:
        assert self._outcome(self._by_us, text) == self._outcome(self._by_psql, text)

    def _outcome(self, run: Callable[[str], int], text: str) -> tuple[list[object], int]:
        """The rows that stay, and the number of errors."""
        self._connection.execute("truncate seen restart identity; drop function if exists note")
        errors = run(text)
        return [row for (row,) in self._connection.execute("select v from seen order by id").fetchall()], errors

    def _by_psql(self, text: str) -> int:
        self._path.write_bytes(text.encode())
        program = self._database.server.installation.bin / "psql"
        command = [str(program), "-X", "-q", "-f", str(self._path), self._database.conninfo]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr.count("ERROR:")

    def _by_us(self, text: str) -> int:
        errors = 0
        for statement in split(text).statements:
            try:
                self._connection.execute(statement.text.encode())
            except psycopg.Error:
                errors += 1
        self._connection.rollback()
        return errors


@pytest.fixture(scope="module")
def judge(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    made = Judge(database, tmp_path_factory.mktemp("split") / "file.sql")
    yield made
    made.close()


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(text=FILE)
def test_well_formed_files_are_split_as_by_psql(judge: Judge, text: str) -> None:
    judge.check(text)


@settings(max_examples=examples(40), deadline=None)
@given(text=PIECES)
def test_malformed_files_are_split_as_by_psql(judge: Judge, text: str) -> None:
    judge.check(text)
