"""Options of sign-in, claims and access, as plain data for workers (sign-in-1 to sign-in-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.auth.argon2_hash import Argon2
from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.auth.external.options import ExternalOptions
from rowcall.core.auth.password_hash import ITERATIONS
from rowcall.core.auth.schemes import Schemes


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """Names of special columns of login rows, and options of password verification."""

    status: str = "status"
    scheme: str = "scheme"
    body: str = "body"
    hash: str = "hash"
    second_factor: str | None = None
    """Column with further second factors of the user; None: there is no such column."""
    content_type: str = "application/json"
    """Content type of a `body` column."""
    password: str = "pass"  # noqa: S105 (part of a parameter's name)
    """The first parameter whose name contains this, in any case, is the password."""
    failed_command: str | None = None
    succeeded_command: str | None = None
    distinguishes_wrong_passwords: bool = False
    """A wrong password leads to 404, and an unknown user to 401."""
    serialize: bool = False
    """The response to a sign-in by cookie without `body` contains the row."""
    iterations: int = ITERATIONS
    argon2: Argon2 | None = None
    """New hashes are made by Argon2id; None: by PBKDF2."""


@dataclass(frozen=True, slots=True)
class ClaimMapping:
    """Parameters and session variables that receive claims. Names of parameters are those of the database."""

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
    """HTTP Basic for every endpoint, and the defaults of endpoints with their own HTTP Basic (access-6 to access-9)."""

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
    """Options against cross-site requests. origins: those that may use sessions by cookie, besides the service's
    own origin; in lower case."""

    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DatabaseRoles:
    """PostgreSQL roles as which routines run. claim: names one of `allowed`."""

    claim: str = "database_role"
    allowed: frozenset[str] = frozenset()
    anonymous: str | None = None
    """Role of anonymous callers; None: they are refused."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """Options of API keys. header: its name in lower case. seconds: for which a result of the command is cached."""

    header: str
    command: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SessionCheck:
    """Introspection of sessions. claim: with the session id. seconds: for which a result is cached."""

    claim: str
    command: str
    seconds: float


LONGEST_SESSION = 65_536
"""Most characters of a token, or of a cookie with all of its chunks, that is read."""


@dataclass(frozen=True, slots=True)
class SecondFactorOptions:
    """Options of the second factor. Times in seconds."""

    path: str = "/api/second-factor"
    issuer: str = ""
    """Name of the application that an authenticator app shows."""
    pending: float = 300.0
    """Time from the first factor to the second."""
    drift: int = 1
    """Steps of 30 seconds by which the clock of an authenticator app may be early or late."""
    recovery_codes: int = 10
    attempts: int = 5
    """Wrong codes in a row after which further ones have to wait."""
    remember: float | None = None
    """Time for which a device is remembered; None: devices are not remembered."""
    cookie: str = "rowcall-device"
    enrol_within: float | None = None
    """Longest time since the sign-in of a user who sets up a second factor; None: no limit."""
    rate_limiter: str | None = None


@dataclass(frozen=True, slots=True)
class AuthOptions:
    schemes: Schemes = field(default_factory=Schemes)
    identity: IdentityClaims = field(default_factory=IdentityClaims)
    login: LoginOptions = LoginOptions()
    mapping: ClaimMapping = ClaimMapping()
    basic: BasicOptions = field(default_factory=BasicOptions)
    records_sign_in_time: bool = False
    """Whether a session records when its user signed in."""
    impersonation_valid: float | None = 1800.0
    """Lifetime of an impersonation in seconds; None: until the session ends."""
    longest_session: int = LONGEST_SESSION
    """A longer session is not issued, because no request could send it."""
    single_use: bool = True
    """Whether refresh tokens can be used once only."""
    roles_match_users: bool = False
    """Values of `authorize` are compared with ids and names too."""
    claims_from_anonymous: bool = False
    """Anonymous callers may supply parameters that are injected from claims."""
    database_roles: DatabaseRoles = DatabaseRoles()
    api_keys: ApiKeys | None = None
    session_check: SessionCheck | None = None
    cross_site: CrossSite | None = None
    """Protection of sessions by cookie against other sites. None: off."""
    second_factor: SecondFactorOptions | None = None
    """Second factor of logins. None: off."""
    external: ExternalOptions | None = None
    """Sign-in through external providers. None: off."""
