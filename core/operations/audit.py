"""Security audit (`rowcall --audit`): findings about open endpoints and the rights of the service in the database.

Pure functions: facts of the database are passed as `DatabaseFacts`. A finding names its object and the remedy.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rowcall.core.auth.options import LoginOptions
from rowcall.core.catalogue.catalog import RoutineKind, Volatility
from rowcall.core.catalogue.installation import NOT_INSTALLED, PROTECTED_JOBS, Installation
from rowcall.core.endpoint.capabilities import Impersonation, ValuePlace
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.tables.operations import Conflict
from rowcall.core.tables.routines import TableOperation

DEFAULT_LOGIN = LoginOptions()


class Severity(enum.Enum):
    """Severity of a finding. high: must be fixed. medium: may be intended, but has to be reviewed. low: information."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of the audit. code: kind of the finding, such as `anonymous-write`. about: name of the object. remedy:
    what to do, as words or SQL."""

    severity: Severity
    code: str
    about: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Role:
    """The role with which the service connects."""

    name: str
    superuser: bool = False
    bypasses: bool = False
    """The attribute BYPASSRLS."""
    creates_roles: bool = False
    creates_databases: bool = False
    owns_database: bool = False
    memberships: tuple[str, ...] = ()
    """Predefined roles of PostgreSQL with rights beyond data, of which the role is a member."""


@dataclass(frozen=True, slots=True)
class Definer:
    """A SECURITY DEFINER routine that the service may call. by_superuser: its owner is a superuser."""

    oid: int
    """Oid of the routine."""
    name: str
    owner: str
    by_superuser: bool
    search_path: str | None
    """None: the search_path of the caller."""
    parsed: bool
    """Whether its names were resolved when it was created (`begin atomic`)."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Row level security and privileges of a table or view that is served, or that has row level security and is
    readable. A view with security_invoker counts as having row level security that applies. owned: by the role of the
    service."""

    oid: int
    name: str
    is_view: bool
    has_policies: bool
    """Whether row level security is enabled."""
    holds: bool
    """Whether row level security applies to the role of the service."""
    owned: bool
    privileges: frozenset[str]
    """Privileges of the role of the service, in lower case."""


@dataclass(frozen=True, slots=True)
class OpenWrites:
    """What the anonymous role of PostgREST's interface may write of a table or view.

    privileges: in lower case, such as `insert`. has_policies: row level security is enabled.
    """

    name: str
    privileges: tuple[str, ...]
    has_policies: bool


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """Facts of the database on which findings rest."""

    role: Role
    definers: tuple[Definer, ...] = ()
    tables: tuple[TableFacts, ...] = ()
    open_writes: tuple[OpenWrites, ...] = ()
    public_schemas: tuple[str, ...] = ()
    """Schemas in which every role may create objects."""
    installation: Installation = NOT_INSTALLED
    stored_features: tuple[str, ...] = ()
    """Keys of enabled capabilities that use restricted functions of the schema `rowcall`."""
    source: str | None = None
    """Connection of the database, of whose routines and tables these facts are (`Endpoint.catalogue_connection`); None:
    the main one."""


@dataclass(frozen=True, slots=True)
class Openness:
    """Names of the endpoints that anonymous callers may call. writing: those of them that may change data."""

    endpoints: tuple[str, ...] = ()
    writing: tuple[str, ...] = ()
    count: int = 0
    """Number of all endpoints."""

    @property
    def sentence(self) -> str:
        """Summary for the log of a start; empty without endpoints."""
        if not self.count:
            return ""
        named = ", ".join(self.writing[:3]) + (" …" if len(self.writing) > 3 else "")
        writing = f", {len(self.writing)} of them may write ({named})" if self.writing else ""
        return f"{len(self.endpoints)} of {self.count} endpoints are open to anonymous callers{writing}"


READS = frozenset({"GET", "HEAD", "QUERY"})


def openness(endpoints: Iterable[Endpoint]) -> Openness:
    """Return the open endpoints; internal ones are ignored."""
    offered = [endpoint for endpoint in endpoints if not endpoint.options.internal]
    open_endpoints = [endpoint for endpoint in offered if is_open(endpoint)]
    writing = tuple(endpoint.name for endpoint in open_endpoints if may_write(endpoint))
    return Openness(tuple(endpoint.name for endpoint in open_endpoints), writing, len(offered))


def is_open(endpoint: Endpoint) -> bool:
    """Return whether anonymous callers may call the endpoint.

    Logins do not count, because they are always open, nor do webhooks, whose signature names the sender.
    """
    return endpoint.access.anonymous and not endpoint.options.login and endpoint.access.signature is None


def may_write(endpoint: Endpoint) -> bool:
    """Return whether a call may change data: the method is none of `READS`, and the routine is volatile and runs. An
    endpoint that invalidates cached responses does not run its routine."""
    runs = endpoint.options.invalidates is None
    return runs and endpoint.method not in READS and endpoint.routine.volatility is Volatility.VOLATILE


# --- findings ------------------------------------------------------------------------------------------------------


def endpoint_findings(endpoints: Sequence[Endpoint], *, login: LoginOptions = DEFAULT_LOGIN) -> Iterator[Finding]:
    """Yield findings about open endpoints that write, impersonation, logins, and tenants that callers choose. login:
    names of the columns and parameters of logins."""
    for name in openness(endpoints).writing:
        yield Finding(
            Severity.MEDIUM,
            "anonymous-write",
            name,
            "anonymous callers may call it, and it may change data",
            "authorize, or a rate limit and a check of its own",
        )
    yield from impersonation_findings(endpoints)
    yield from login_findings(endpoints, login)
    for endpoint in endpoints:
        tenant = endpoint.options.tenant
        if tenant is not None and tenant.place is not ValuePlace.CLAIM:
            where = f"header {tenant.name}" if tenant.place is ValuePlace.HEADER else f"host name {tenant.name}"
            yield Finding(
                Severity.LOW,
                "chosen-tenant",
                endpoint.name,
                f"its tenant is in the {where}, which callers choose unless a gateway sets it",
                "tenant from claim …, if users may act for their own tenant only",
            )


def impersonation_findings(endpoints: Sequence[Endpoint]) -> Iterator[Finding]:
    """Yield findings about endpoints that begin an impersonation without a limit for the age of the session."""
    for endpoint in endpoints:
        if endpoint.access.impersonation is Impersonation.BEGINS and endpoint.access.freshness is None:
            yield Finding(
                Severity.LOW,
                "impersonation",
                endpoint.name,
                "its callers can act as other users, and a stolen session of theirs is enough for that",
                "authorize … within 5 minutes",
            )


def login_findings(endpoints: Sequence[Endpoint], login: LoginOptions) -> Iterator[Finding]:
    """Yield findings about logins that take a password but return no hash, so that the service cannot verify it. login:
    name of the column with the hash, and the text that the name of a parameter with a password contains; both are
    compared without case."""
    for endpoint in endpoints:
        columns = {column.column.name.lower() for column in endpoint.shape.columns}
        takes_password = any(login.password.lower() in parameter.db_name.lower() for parameter in endpoint.parameters)
        if endpoint.options.login and takes_password and login.hash.lower() not in columns:
            yield Finding(
                Severity.LOW,
                "login-without-hash",
                endpoint.name,
                f"it takes a password and returns no column {login.hash}, so the routine alone decides who signs in",
                f"return the stored hash as {login.hash}, and let the service verify the password",
            )


def database_findings(facts: DatabaseFacts, endpoints: Iterable[Endpoint]) -> Iterator[Finding]:
    """Yield findings about the role of the service, open schemas, the schema `rowcall`, SECURITY DEFINER routines,
    served tables, and writes of anonymous callers by PostgREST's interface, in the database of the facts. endpoints:
    also those whose routines are in other databases, where the same oids belong to other objects."""
    here = [endpoint for endpoint in endpoints if endpoint.catalogue_connection == facts.source]
    for finding in _findings_of_database(facts, here):
        where = "" if facts.source is None else f" (connection {facts.source})"
        yield replace(finding, about=finding.about + where)


def _findings_of_database(facts: DatabaseFacts, endpoints: Sequence[Endpoint]) -> Iterator[Finding]:
    """Yield the findings of `database_findings` without the name of the connection. endpoints: those whose routines are
    in the database of the facts."""
    yield from _role_findings(facts.role)
    for schema in facts.public_schemas:
        yield Finding(
            Severity.MEDIUM,
            "public-create",
            f"schema {schema}",
            "every role may create objects in it, which others then find by their search_path",
            f"revoke create on schema {schema} from public",
        )
    yield from _installation_findings(facts.installation, facts.stored_features)
    called = {
        endpoint.routine.oid: endpoint for endpoint in endpoints if endpoint.routine.kind in (_FUNCTION, _PROCEDURE)
    }
    for definer in facts.definers:
        yield from _definer_findings(definer, called.get(definer.oid), facts.public_schemas)
    yield from _table_findings(facts, endpoints)
    for item in facts.open_writes:
        unprotected = "" if item.has_policies else "; it has no row level security"
        yield Finding(
            Severity.MEDIUM,
            "anonymous-write",
            item.name,
            f"anonymous callers of PostgREST's interface may {', '.join(item.privileges)}{unprotected}",
            f"revoke {', '.join(item.privileges)} on {item.name} from the role of PostgRest:AnonymousRole",
        )


_FUNCTION, _PROCEDURE = RoutineKind.FUNCTION, RoutineKind.PROCEDURE


def _role_findings(role: Role) -> Iterator[Finding]:
    about = f"role {role.name}"
    if role.superuser:
        yield Finding(
            Severity.HIGH,
            "superuser",
            about,
            "the service connects as a superuser: no privilege and no policy holds for it",
            "connect as a role that may do only what the endpoints need",
        )
        return
    for present, word in (
        (role.bypasses, "BYPASSRLS"),
        (role.creates_roles, "CREATEROLE"),
        (role.creates_databases, "CREATEDB"),
    ):
        if present:
            yield Finding(
                Severity.HIGH if word == "BYPASSRLS" else Severity.MEDIUM,
                "role-attribute",
                about,
                f"the role of the service has {word}",
                f"alter role {role.name} no{word.lower()}",
            )
    if role.owns_database:
        yield Finding(
            Severity.MEDIUM,
            "owns-database",
            about,
            "the role of the service owns the database",
            "let another role own it",
        )
    for name in role.memberships:
        yield Finding(
            Severity.HIGH, "membership", about, f"the role of the service is a member of {name}", f"revoke {name}"
        )


def _installation_findings(installation: Installation, features: Sequence[str]) -> Iterator[Finding]:
    for key, right in installation.missing_rights(features):
        reason, _, remedy = right.partition(": ")
        yield Finding(Severity.MEDIUM, "missing-right", key, f"it does not work: {reason}", remedy)
    if "Jobs:Enabled" in features and 0 < installation.version < PROTECTED_JOBS:
        yield Finding(
            Severity.MEDIUM,
            "public-queue",
            "schema rowcall",
            "every role of the database may take, end and read jobs",
            "rowcall --install",
        )


def _definer_findings(definer: Definer, endpoint: Endpoint | None, public_schemas: Sequence[str]) -> Iterator[Finding]:
    reached = "" if endpoint is None else f", called by {endpoint.name}"
    if definer.search_path is None and not definer.parsed:
        yield Finding(
            Severity.HIGH if endpoint is not None else Severity.MEDIUM,
            "definer-search-path",
            definer.name,
            f"runs with the rights of {definer.owner} and finds names by the search_path of its caller{reached}",
            f"alter routine {definer.name} set search_path = SCHEMA, pg_temp",
        )
    elif definer.search_path is not None:
        words = [word.strip().strip('"') for word in definer.search_path.split(",")]
        for schema in (word for word in words if word in public_schemas):
            yield Finding(
                Severity.HIGH if endpoint is not None else Severity.MEDIUM,
                "definer-open-schema",
                definer.name,
                f"runs with the rights of {definer.owner} and looks in {schema}, where every role may create{reached}",
                f"revoke create on schema {schema} from public",
            )
    if definer.by_superuser and endpoint is not None:
        yield Finding(
            Severity.MEDIUM,
            "definer-superuser",
            definer.name,
            f"runs with the rights of the superuser {definer.owner}{reached}",
            "give it an owner who may do only what it does",
        )


def _table_findings(facts: DatabaseFacts, endpoints: Sequence[Endpoint]) -> Iterator[Finding]:
    served = _operations_by_table(endpoints)
    for table in facts.tables:
        operations = served.get(table.oid)
        if table.has_policies and not table.holds:
            why = "it owns the table" if table.owned and not facts.role.superuser else "of its attributes"
            yield Finding(
                Severity.HIGH,
                "policies-without-effect",
                table.name,
                f"its row level security does not hold for {facts.role.name}, because {why}",
                f"alter table {table.name} force row level security, or connect as another role",
            )
        if operations is None:
            continue
        if not table.is_view and not table.has_policies:
            yield _without_policies(table, operations)
        elif table.is_view and not table.has_policies:
            yield Finding(
                Severity.LOW,
                "view",
                table.name,
                "a view without security_invoker reads with the rights of its owner, past row level security",
                f"alter view {table.name} set (security_invoker = true)",
            )
        wider = sorted(table.privileges - set(operations.commands) - {"select"})
        if wider and not table.owned:
            yield Finding(
                Severity.LOW,
                "grants",
                table.name,
                f"{facts.role.name} may {', '.join(wider)}, which no endpoint of the table does",
                f"revoke {', '.join(wider)} on {table.name} from {facts.role.name}, unless a routine needs it",
            )


@dataclass(slots=True)
class _Operations:
    """The operations that endpoints offer on one table.

    commands: in lower case, such as `insert`. open_to_all: names of endpoints for anonymous callers. open_writes: one
    of these writes. roles_everywhere: every endpoint requires a role or user.
    """

    commands: set[str] = field(default_factory=set)
    open_to_all: list[str] = field(default_factory=list)
    open_writes: bool = False
    roles_everywhere: bool = True


def _operations_by_table(endpoints: Sequence[Endpoint]) -> Mapping[int, _Operations]:
    """Return oid of a table or view → the operations that endpoints offer on it."""
    operations: dict[int, _Operations] = {}
    for endpoint in endpoints:
        source = endpoint.routine.source
        if not isinstance(source, TableOperation):
            continue
        entry = operations.setdefault(source.table.oid, _Operations())
        entry.commands.add(source.operation.command.value)
        if source.operation.conflict is Conflict.UPDATE:
            entry.commands.add("update")
        if is_open(endpoint):
            entry.open_to_all.append(endpoint.name)
            entry.open_writes = entry.open_writes or may_write(endpoint)
        entry.roles_everywhere = entry.roles_everywhere and bool(endpoint.access.required)
    return operations


def _without_policies(table: TableFacts, operations: _Operations) -> Finding:
    if operations.open_to_all:
        severity = Severity.HIGH if operations.open_writes else Severity.MEDIUM
        whom = f"anonymous callers, by {operations.open_to_all[0]}"
    else:
        severity = Severity.LOW if operations.roles_everywhere else Severity.MEDIUM
        whom = "users with the required roles" if operations.roles_everywhere else "every signed-in user"
    return Finding(
        severity,
        "no-policies",
        table.name,
        f"all of its rows are accessible to {whom}: it has no row level security",
        f"alter table {table.name} enable row level security, with policies on the claims of the caller",
    )
