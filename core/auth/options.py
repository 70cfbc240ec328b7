"""What the configuration says about sign-in, claims and access; plain data for workers (sign-in-1 to sign-in-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.auth.external.options import ExternalOptions
from rowcall.core.auth.password_hash import ITERATIONS
from rowcall.core.auth.schemes import Schemes


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """Special columns of login rows, and what belongs to checking passwords."""

    status: str = "status"
    scheme: str = "scheme"
    body: str = "body"
    hash: str = "hash"
    content_type: str = "application/json"
    """Of a `body` column."""
    password: str = "pass"  # noqa: S105 (part of a parameter's name)
    """The first parameter whose name contains this, in any case, holds the password."""
    failed_command: str | None = None
    succeeded_command: str | None = None
    tells_wrong_passwords: bool = False
    """A wrong password is answered by 404, and an unknown user by 401."""
    serialize: bool = False
    """A cookie sign-in without `body` answers with the row."""
    iterations: int = ITERATIONS


@dataclass(frozen=True, slots=True)
class ClaimMapping:
    """Where claims go. The names of parameters are those of the database."""

    parameters: tuple[tuple[str, str], ...] = (
        ("_user_id", "user_id"),
        ("_user_name", "user_name"),
        ("_user_roles", "user_roles"),
    )
    """Parameter → claim."""
    json_parameter: str | None = "_user_claims"
    address_parameter: str | None = "_ip_address"
    context: tuple[tuple[str, str], ...] = (
        ("request.user_id", "user_id"),
        ("request.user_name", "user_name"),
        ("request.user_roles", "user_roles"),
    )
    """Session variable → claim."""
    json_key: str | None = None
    address_key: str | None = "request.ip_address"


@dataclass(frozen=True, slots=True)
class BasicOptions:
    """HTTP Basic for every endpoint, and the defaults of those that ask for it themselves (access-6 to access-9)."""

    enabled: bool = False
    realm: str | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    hashed: bool = True
    """Stored passwords are hashes."""
    tls: str = "Required"
    """`Required`, `Warning` or `Ignore`."""
    command: str | None = None


@dataclass(frozen=True, slots=True)
class CrossSite:
    """origins: those that may act for who is signed in by cookie, besides the service's own; in lower case."""

    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DatabaseRoles:
    """Roles of PostgreSQL that routines run as. claim: that names one of `allowed`."""

    claim: str = "database_role"
    allowed: frozenset[str] = frozenset()
    anonymous: str | None = None
    """For who is not signed in; None: they are refused."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """header: in lower case. seconds: for which an answer of the command is good."""

    header: str
    command: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SessionCheck:
    """Sessions that can be ended: by the claim of their id. seconds: for which an answer is good."""

    claim: str
    command: str
    seconds: float


LONGEST_SESSION = 65_536
"""Characters of a token, or of a cookie with all of its parts, that is looked at."""


@dataclass(frozen=True, slots=True)
class AuthOptions:
    schemes: Schemes = field(default_factory=Schemes)
    identity: IdentityClaims = field(default_factory=IdentityClaims)
    login: LoginOptions = LoginOptions()
    mapping: ClaimMapping = ClaimMapping()
    basic: BasicOptions = field(default_factory=BasicOptions)
    notes_time: bool = False
    impersonation_valid: float | None = 1800.0
    """Seconds for which somebody acts as another user; None: as long as the session holds."""
    """A session knows when its user signed in."""
    longest_session: int = LONGEST_SESSION
    """A longer one is not issued: no request could bring it along."""
    single_use: bool = True
    """Of refresh tokens."""
    roles_match_users: bool = False
    """Values of `authorize` are compared with ids and names too."""
    claims_from_anonymous: bool = False
    """Who is not signed in may supply parameters that are filled from claims."""
    database_roles: DatabaseRoles = DatabaseRoles()
    api_keys: ApiKeys | None = None
    session_check: SessionCheck | None = None
    cross_site: CrossSite | None = None
    """What guards cookie sessions against other sites. None: nothing."""
    external: ExternalOptions | None = None
    """Sign-in through outside providers. None: there is none."""
