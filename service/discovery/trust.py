"""Whose objects may become endpoints: a routine runs with the rights of whoever calls it, and that is the service.

Whoever owns a schema could publish a function that reads for him what he may not read himself, or take over the path
of a sign-in. So objects count whose owner could do so anyway (a superuser, the owner of the database, the role of the
service and those it is a member of), or is named by the configuration; and all of a schema that the configuration
names, as whoever may create there has been given that right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from rowcall.core.errors.diagnostics import Diagnostic

if TYPE_CHECKING:
    from rowcall.service.discovery.filters import NameFilter

EVERYBODY = "*"

# A superuser is told to be a member of every role; only the catalogue knows which it has been made a member of.
ROLES = """
with recursive member(oid) as (
    select oid from pg_catalog.pg_roles where rolname = current_user
    union
    select m.roleid from pg_catalog.pg_auth_members m join member on m.member = member.oid
)
select r.oid, r.rolname::text,
       r.rolsuper or r.oid in (select oid from member) or r.rolname = 'pg_database_owner'
         or r.oid = (select datdba from pg_catalog.pg_database where datname = current_database())
from pg_catalog.pg_roles r
order by r.oid
"""


@dataclass(frozen=True, slots=True)
class Trust:
    """What the configuration says: schemas that it names (`IncludeSchemas`), and owners (`Service:TrustedOwners`)."""

    schemas: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: NameFilter) -> Trust:
        return cls(frozenset(names.include_schemas or ()), frozenset(names.trusted_owners))


NOBODY = Trust()
"""Besides those who could do it anyway."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The roles of the server, as far as trust goes. names: by oid."""

    names: Mapping[int, str] = field(default_factory=dict)
    powerful: frozenset[int] = frozenset()
    """Could do anyway what an endpoint would let them do."""

    def trusts(self, trust: Trust, schema: str, owner: int) -> bool:
        if schema in trust.schemas or owner in self.powerful or EVERYBODY in trust.owners:
            return True
        return self.name(owner) in trust.owners

    def name(self, owner: int) -> str:
        return self.names.get(owner, f"role {owner}")


async def read_owners(cursor: AsyncCursor[TupleRow]) -> Owners:
    await cursor.execute(ROLES)
    rows = await cursor.fetchall()
    return Owners({row[0]: row[1] for row in rows}, frozenset(row[0] for row in rows if row[2]))


def left_out(objects: Iterable[tuple[str, str]]) -> tuple[Diagnostic, ...]:
    """One for each schema and owner. objects: schema and owner of each object that would be published but for this."""
    return tuple(
        Diagnostic(
            f"schema {schema}",
            None,
            f"not published are {count} of its objects, owned by the role {owner}: add the role to "
            "Service:TrustedOwners, or name the schema in Service:IncludeSchemas, where whoever may create may publish",
            left_out=count,
        )
        for (schema, owner), count in sorted(Counter(objects).items())
    )
