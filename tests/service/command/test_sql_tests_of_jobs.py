"""Tests in SQL that run due jobs (testing-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database

SQL = """
create table work (what text);
create function simple(_what text) returns text language plpgsql as $$
begin
  raise info 'half of %', _what;
  insert into work values (_what || coalesce(' of ' || nullif(current_setting('request.user_id', true), ''), ''));
  return _what;
end $$;
comment on function simple is 'HTTP POST /simple
allow_anonymous
user_context
job queue few retries 1';
create function fails(_what text) returns text language plpgsql as $$
begin
  insert into work values (_what);
  raise exception '% is broken', _what;
end $$;
comment on function fails is 'HTTP POST /fails
allow_anonymous
job retries 1 backoff 1 hour';
create function chain(_left int) returns int language plpgsql as $$
begin
  insert into work values (_left::text);
  if _left <> 0 then
    perform rowcall.enqueue('POST /chain', jsonb_build_object('left', _left - 1));
  end if;
  return _left;
end $$;
comment on function chain is 'HTTP POST /chain
allow_anonymous
job';
create function sells(_id int) returns int language sql as $$ insert into work values ('sold') returning _id $$;
comment on function sells is 'HTTP POST /sells
allow_anonymous
publishes shop.sold';
create function pays(_id int) returns int language sql as $$ insert into work values ('paid') returning _id $$;
comment on function pays is 'HTTP POST /pays
allow_anonymous
idempotent';
"""

GOOD = {
    "result": """begin;
/*
POST /simple
# @claim user_id=41

{"what": "a"}

HTTP/1.1 202
*/
select count(*) = 0, 'it runs later' from work;
/* RUN JOBS */
select what = 'a of 41', what from work;
select state = 'done' and queue = 'few' and attempts = 1 and result = 'a', 'it is done' from rowcall.job;
select message = 'half of a', 'progress' from rowcall.job_progress;
/* run jobs */
select count(*) = 1, 'it has run once' from work;
""",
    "failure": """begin;
select rowcall.enqueue('POST /fails', '{"what": "b"}');
/* RUN JOBS */
select count(*) = 0, 'its work is rolled back' from work;
select state = 'waiting' and error like '%b is broken%' and run_at > now() + interval '50 minutes', error
from rowcall.job;
update rowcall.job set run_at = now();
/* RUN JOBS */
select state = 'failed' and attempts = 2, state from rowcall.job;
""",
    "unfit": """begin;
select rowcall.enqueue('POST /chain', '{"left": "x"}');
/* RUN JOBS */
select state = 'failed' and attempts = 1 and error like '%left%', error from rowcall.job;
""",
    "chain": """begin;
select rowcall.enqueue('POST /chain', '{"left": 3}');
/* RUN JOBS */
select array_agg(what order by what) = array['0', '1', '2', '3'], 'each enqueues the next one' from work;
""",
    "published": """begin;
/* POST /sells

{"id": 7}

HTTP/1.1 200
*/
select topic = 'shop.sold' and payload #>> '{}' = '7', payload::text from rowcall.webhook_message;
""",
    "repeated": """begin;
/* POST /pays
Idempotency-Key: "a"

{"id": 7}

HTTP/1.1 200
*/
/* POST /pays
Idempotency-Key: "a"

{"id": 7}

HTTP/1.1 200
*/
select count(*) = 1, 'it took effect once' from work;
""",
    "after": """begin;
/* POST /fails

{"what": "b"}
*/
do $$ begin assert (select count(*) from rowcall.job) = 1; end $$;
rollback;
select count(*) = 0, 'the request did not commit' from rowcall.job;
""",
    "later": """begin;
select rowcall.enqueue('POST /simple', '{"what": "late"}', _run_at => now() + interval '1 day');
/* RUN JOBS */
select state = 'waiting' and attempts = 0, 'it is not due' from rowcall.job;
""",
}


@pytest.fixture(scope="module")
def planted(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Database:
    database.execute(SQL)
    folder = tmp_path_factory.mktemp("install")
    assert rowcall(folder, "--install", f"--ConnectionStrings:Default={database.conninfo}").returncode == 0
    return database


def run_files(database: Database, folder: Path, files: dict[str, str], *arguments: str) -> tuple[int, str]:
    for name, text in files.items():
        (folder / f"{name}.test.sql").write_text(text, encoding="utf-8")
    settings = (f"--ConnectionStrings:Default={database.conninfo}", "--TestRunner:FilePattern=*.test.sql")
    done = rowcall(folder, "--test", *settings, *arguments)
    return done.returncode, done.stdout + done.stderr


def test_jobs_of_a_test_run_in_its_transaction(planted: Database, tmp_path: Path) -> None:
    code, report = run_files(planted, tmp_path, GOOD, "--Jobs:Enabled=true", "--Webhooks:Enabled=true")
    assert code == 0, report
    assert planted.value("select count(*) from rowcall.job") == 0
    assert planted.value("select count(*) from rowcall.webhook_message") == 0
    assert planted.value("select count(*) from work") == 0


@pytest.mark.slow
def test_jobs_that_enqueue_themselves_without_end(planted: Database, tmp_path: Path) -> None:
    endless = """begin;
select rowcall.enqueue('POST /chain', '{"left": -1}');
/* RUN JOBS */
"""
    code, report = run_files(planted, tmp_path, {"endless": endless}, "--Jobs:Enabled=true")
    assert code == 2
    assert "more than 1000 jobs are due; does a job enqueue itself?" in report


def test_run_jobs_with_disabled_jobs_or_other_words_is_an_error(planted: Database, tmp_path: Path) -> None:
    files = {"off": "/* RUN JOBS */", "words": "/* RUN JOBS OF few */ select true, 'fine';"}
    code, report = run_files(planted, tmp_path, files)
    assert code == 2
    assert "jobs are off; set Jobs:Enabled" in report
    assert "the block that runs jobs is RUN JOBS, without further words" in report
