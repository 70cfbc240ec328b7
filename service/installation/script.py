"""The SQL that installs and updates the schema `rowcall`. It can run any number of times, and by any role that may
create a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from rowcall.core.text.naming import quote_identifier

_BEGIN = """\
do $rowcall$
begin
if to_regnamespace('rowcall') is null then
create schema rowcall;
grant usage on schema rowcall to public;
end if;
end
$rowcall$;
create table if not exists rowcall.schema_version (
    version integer primary key,
    installed timestamptz not null default now()
);
grant select on rowcall.schema_version to public;
lock table rowcall.schema_version in exclusive mode;
"""
_STEP = """\
do $rowcall$
begin
if not exists (select from rowcall.schema_version where version = {version}) then
execute $rowcall_sql$
{sql}
$rowcall_sql$;
insert into rowcall.schema_version (version) values ({version});
comment on schema rowcall is 'Stored state of the service rowcall, version {version}';
end if;
end
$rowcall$;
"""
# Default privileges are those of functions that later versions create.
_GRANTS = """\
grant usage on schema rowcall to {role};
grant execute on all functions in schema rowcall to {role};
alter default privileges in schema rowcall grant execute on functions to {role};
"""


@cache
def steps() -> tuple[tuple[int, str], ...]:
    """Return version and SQL of each step, in order."""
    scripts = (item for item in files(__package__).iterdir() if item.name.endswith(".sql"))
    return tuple(sorted((int(item.name[:3]), item.read_text(encoding="utf-8")) for item in scripts))


def newest() -> int:
    """Return the newest version of the schema `rowcall`, which it has after all steps."""
    return steps()[-1][0]


def install_sql(grantees: Sequence[str] = ()) -> str:
    """Return the SQL script that installs the schema `rowcall` or updates it to the newest version, in one transaction.
    Steps that are already installed are skipped.

    grantees: roles of services that may use the schema and execute its functions, also those of later versions.
    """
    return "".join(_parts(grantees))


def _parts(grantees: Sequence[str]) -> Iterator[str]:
    yield "begin;\n"
    yield _BEGIN
    for version, sql in steps():
        yield _STEP.format(version=version, sql=sql.strip())
    for role in map(quote_identifier, grantees):
        yield _GRANTS.format(role=role)
    # A service that runs reads the catalogue again, and serves what was left out.
    yield "notify rowcall, 'reload';\n"
    yield "commit;\n"
