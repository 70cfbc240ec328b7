"""Trust in owners: whose objects may become endpoints. A routine runs with the rights of its caller, the service.

Without this check, the owner of any schema could publish a function that reads data which that owner may not read, or
take over the path of a sign-in. An object is trusted if its owner has this power without an endpoint (a superuser, the
owner of the database, the role of the service and roles of which it is a member), or if the configuration names the
owner. All objects of a schema that the configuration names are trusted too: the right to create there is the right to
publish.
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

ALL_OWNERS = "*"
"""In `Service:TrustedOwners`: all roles."""

# PostgreSQL reports a superuser as a member of every role; only the catalogue contains the granted memberships.
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
    """Which objects the configuration trusts. schemas: all objects in these (`IncludeSchemas`). owners: all objects of
    these roles (`Service:TrustedOwners`); `*` means all roles."""

    schemas: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: NameFilter) -> Trust:
        """Return the trust that a filter contains."""
        return cls(frozenset(names.include_schemas or ()), frozenset(names.trusted_owners))


NO_TRUST = Trust()
"""Trust in no owners besides the powerful ones."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The roles of the server. names: of roles, by oid."""

    names: Mapping[int, str] = field(default_factory=dict)
    powerful: frozenset[int] = frozenset()
    """Roles to which an endpoint gives no further power."""

    def trusts(self, trust: Trust, schema: str, owner: int) -> bool:
        """Return whether an object in this schema, of the owner with this oid, may be published."""
        if schema in trust.schemas or owner in self.powerful or ALL_OWNERS in trust.owners:
            return True
        return self.name(owner) in trust.owners

    def name(self, owner: int) -> str:
        """Return the name of the role with this oid, or a text with the oid if the role does not exist."""
        return self.names.get(owner, f"role {owner}")


async def read_owners(cursor: AsyncCursor[TupleRow]) -> Owners:
    """Read all roles of the server, and which of them are trusted without configuration. Raises `psycopg.Error`."""
    await cursor.execute(ROLES)
    rows = await cursor.fetchall()
    return Owners({row[0]: row[1] for row in rows}, frozenset(row[0] for row in rows if row[2]))


def untrusted_owner_diagnostics(objects: Iterable[tuple[str, str]]) -> tuple[Diagnostic, ...]:
    """Return a diagnostic for each pair of schema and owner. objects: schema and owner of each object that is left out
    because its owner is not trusted.
    """
    return tuple(
        Diagnostic(
            f"schema {schema}",
            None,
            f"{count} of its objects are not published, as the role {owner} owns them: add the role to "
            "Service:TrustedOwners, or the schema to Service:IncludeSchemas, which trusts all roles that may create "
            "objects in it",
            left_out=count,
        )
        for (schema, owner), count in sorted(Counter(objects).items())
    )
