"""Options of sign-in, claims and access, as plain data for workers (sign-in-1 to sign-in-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.auth.argon2_hash import LEAST_MEMORY, Argon2
from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.auth.cookies import cookie_name
from rowcall.core.auth.external.options import ExternalOptions
from rowcall.core.auth.password_hash import ITERATIONS
from rowcall.core.auth.schemes import Schemes
from rowcall.core.sections.declaration import choice, flag, integer, interval, part, section, text, text_map, texts
from rowcall.core.sections.values import as_set, or_empty, path_like, without_empty


@section("Service:AuthenticationOptions:BasicAuth", "User name and password with each request.")
class BasicOptions:
    """HTTP Basic for every endpoint, and the defaults of endpoints with their own HTTP Basic (access-6 to access-9)."""

    enabled: bool = flag("Enabled", False, "Require HTTP Basic on all endpoints.")
    realm: str | None = text("Realm", None, "Realm that the browser shows. null: a built-in name.")
    users: Mapping[str, str] = text_map(
        "Users", {}, "User names and their passwords or hashes.", secret=True, convert=without_empty
    )
    tls: str = choice(
        "SslRequirement",
        "Required Warning Ignore",
        "Required",
        "Without Ssl:Enabled: do not start, start with a warning, or start without one.",
    )
    hashed: bool = flag(
        "UseDefaultPasswordHasher", True, "Whether passwords in Users are hashes, as `rowcall --hash` prints them."
    )
    command: str | None = text("ChallengeCommand", None, "Query that checks name and password and returns claims.")


@section("Auth", switch="RefuseCrossSite")
class CrossSite:
    """Options against cross-site requests. origins: those that may use sessions by cookie, besides the service's own
    origin. `service.options.auth` adds those of `Cors`, and converts all of them to the form in which browsers send
    them."""

    refuse_cross_site = flag(
        "RefuseCrossSite",
        True,
        "For requests with a session cookie or HTTP Basic from pages of other origins: refuse sign-in and all "
        "methods but GET, HEAD, OPTIONS and QUERY. With a cookie, refuse also JSON that is sent as text/plain.",
    )
    origins: frozenset[str] = texts(
        "TrustedOrigins",
        (),
        "Origins that RefuseCrossSite does not refuse, such as `https://app.example`; those of "
        "Cors:AllowedOrigins are added, except `*`.",
        convert=as_set,
    )


@section("Auth")
class RefreshTokens:
    single_use: bool = flag(
        "RefreshTokenSingleUse",
        True,
        "Accept each refresh token once. A second use ends all tokens that derive from the same sign-in.",
    )
    use_command: str | None = text(
        "RefreshTokenUseCommand",
        None,
        "SQL that records a use of a refresh token and returns whether it is the first: $1 family, $2 "
        "generation, $3 end of its lifetime. null: uses are stored in memory, or beside the keys with "
        "`DataProtection:Storage` FileSystem.",
    )


@dataclass(frozen=True, slots=True)
class DatabaseRoles:
    """The PostgreSQL roles with which routines run. claim: type of the claim whose value is the role. allowed: the
    roles that the claim may have as value. anonymous: role for anonymous callers; None: they are refused."""

    claim: str
    allowed: frozenset[str]
    anonymous: str | None
    """Role of anonymous callers; None: they are refused."""


def _key_header(text: str) -> str:
    """Return the name of a header in lower case. Raises ValueError if it is not valid, or for `Authorization` and
    `Cookie`, which have another meaning."""
    header = cookie_name(text).lower()
    if header in ("", "authorization", "cookie"):
        raise ValueError(f"{header!r} cannot hold keys")
    return header


@section("Auth:ApiKey", "API keys, which programs send with each request.")
class ApiKeys:
    """Options of API keys. header: its name in lower case. seconds: for which a result of the command is cached."""

    enabled: bool = flag("Enabled", False, "Accept API keys.")
    header: str = text("Header", "X-Api-Key", "Request header with the API key.", convert=_key_header)
    command: str = text(
        "Command",
        "select * from api_key($1)",
        "Query that finds the user of a key: $1 SHA-256 of the key in hex, $2 address of the client. Returns a "
        "login row.",
    )
    seconds: float = interval(
        "CacheDuration", "10 seconds", "How long the result is cached. 0: the query runs for each request."
    )


@section("Auth")
class SessionCheck:
    """Options of introspected sessions, whose validity an SQL command checks. claim: type of the claim that has the
    session id. seconds: time for which a result of the command is cached."""

    command: str = text(
        "SessionCheckCommand",
        None,
        "Query that returns whether a session is still valid (boolean): $1 session id, $2 user id. null: no check.",
        convert=or_empty,
    )
    claim: str = text(
        "SessionClaimType", "session_id", "Claim with the id of the session; a session without it is not checked."
    )
    seconds: float = interval(
        "SessionCheckInterval", "10 seconds", "How long the result is cached. 0: the query runs for each request."
    )


LONGEST_SESSION = 65_536
"""Most characters of a token, or of a cookie with all of its chunks, that is read."""


def _second_factor_path(text: str) -> str | None:
    """Return the path without slashes at its end. Raises ValueError if it is no path of a route."""
    return path_like("/api/second-factor")(text.rstrip("/"))


@section("Auth:SecondFactor", "Second factor: one-time codes of an authenticator app, recovery codes, passkeys.")
class SecondFactorOptions:
    """Options of the second factor. Times in seconds."""

    enabled: bool = flag("Enabled", False, "Ask users who have set up a second factor for it at every login.")
    path: str = text(
        "Path",
        "/api/second-factor",
        "Path of the endpoints with which users set up and prove a second factor.",
        convert=_second_factor_path,
    )
    issuer: str = text(
        "Issuer",
        None,
        "Name of the application that an authenticator app shows. null: ApplicationName.",
        convert=or_empty,
    )
    pending: float = interval("Pending", "5 minutes", "Time from the first factor to the second.")
    drift: int = integer(
        "Drift", 1, "Steps of 30 seconds by which the clock of a phone may be early or late.", maximum=10
    )
    recovery_codes: int = integer("RecoveryCodes", 10, "Number of recovery codes of a user.", minimum=1, maximum=100)
    attempts: int = integer(
        "Attempts",
        5,
        "Wrong codes in a row after which a user has to wait: a second, and twice as long after each further "
        "one, up to an hour.",
        minimum=1,
        maximum=20,
    )
    remember: float | None = interval(
        "RememberDevice",
        None,
        "Time for which a browser need not prove the second factor again, if its user wishes so. null: never.",
    )
    cookie: str = text(
        "DeviceCookie", "rowcall-device", "Name of the cookie that remembers a browser.", convert=cookie_name
    )
    enrol_within: float | None = interval(
        "EnrolWithin",
        None,
        "Longest time since the sign-in of a user who sets up, replaces or removes a second factor. null: no limit.",
    )
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Rate limit of all these paths.")


def _pairs(texts: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    """Return the entries that are neither null nor empty, as pairs."""
    return tuple(without_empty(texts).items())


@section("Service:AuthenticationOptions", "Login rows, claims, and their injection into routines.")
class LoginOptions:
    """Names of special columns of login rows, options of password verification, and claims."""

    default_authentication_type = text(
        "DefaultAuthenticationType", None, "Accepted; no effect here: nothing shows the type of an identity."
    )
    status: str = text("StatusColumnName", "status", "Column of a login row: whether the login succeeded.")
    scheme: str = text("SchemeColumnName", "scheme", "Column of a login row: name of the scheme.")
    body: str = text("BodyColumnName", "body", "Column of a login row: body of the response.")
    content_type: str = text(
        "ResponseTypeColumnName",
        "application/json",
        "Content type of that body (not a column, in spite of the name of the key).",
    )
    hash: str = text("HashColumnName", "hash", "Column of a login row: hash with which the password is verified.")
    password: str = text(
        "PasswordParameterNameContains", "pass", "A parameter whose name contains this text is the password."
    )
    user_id: str = text("DefaultUserIdClaimType", "user_id", "Claim that is the user's id.")
    user_name: str = text("DefaultNameClaimType", "user_name", "Claim that is the user's name.")
    user_roles: str = text("DefaultRoleClaimType", "user_roles", "Claim that holds roles.")
    default_display_name_claim_type = text(
        "DefaultDisplayNameClaimType", "display_name", "Accepted; no effect here: nothing shows the name."
    )
    serialize: bool = flag("SerializeAuthEndpointsResponse", False, "Include the login row in the response.")
    obfuscate_auth_parameter_log_values: bool = flag(
        "ObfuscateAuthParameterLogValues", True, "Hide values of login, logout and sensitive endpoints in logs."
    )
    failed_command: str | None = text(
        "PasswordVerificationFailedCommand",
        None,
        "Command after a wrong password: $1 scheme, $2 user id, $3 user name, all text and all optional.",
    )
    succeeded_command: str | None = text(
        "PasswordVerificationSucceededCommand",
        None,
        "Command after a correct password, with the same parameters; $4 is a new hash to store if the stored one "
        "has another algorithm or work factor, else NULL.",
    )
    distinguishes_wrong_passwords: bool = flag(
        "DistinguishWrongPasswords",
        False,
        "Respond to a wrong password with 404 and to an unknown user with 401. false: failed sign-ins look alike.",
    )
    roles_match_users: bool = flag(
        "RolesMatchUsers", False, "Compare the roles of `authorize` also with the user's id and name."
    )
    note_sign_in_time: bool = flag(
        "NoteSignInTime",
        False,
        "Add the claim `auth_time`, the time of the sign-in, to sessions; `authorize … within` requires it.",
    )
    impersonation_valid: float | None = interval(
        "ImpersonationValid",
        "30 minutes",
        "Lifetime of an impersonation (`impersonate`); refreshing tokens does not extend it. null: that of a session.",
        nullable=True,
    )
    hash_algorithm: str = choice(
        "PasswordHashAlgorithm",
        "Pbkdf2 Argon2id",
        "Pbkdf2",
        "Algorithm of new password hashes; hashes of both are verified. Argon2id needs the extra rowcall[argon2].",
    )
    argon2_memory: int = integer(
        "Argon2Memory", 65_536, "Memory of Argon2id in KiB, in new hashes.", minimum=LEAST_MEMORY
    )
    argon2_iterations: int = integer("Argon2Iterations", 3, "Passes of Argon2id in new hashes.", minimum=1)
    iterations: int = integer(
        "PasswordHashIterations", ITERATIONS, "Rounds of PBKDF2 in new hashes.", minimum=ITERATIONS
    )
    use_user_context: bool = flag("UseUserContext", False, "Set session variables from claims for every endpoint.")
    context: tuple[tuple[str, str], ...] = text_map(
        "ContextKeyClaimsMapping",
        {"request.user_id": "user_id", "request.user_name": "user_name", "request.user_roles": "user_roles"},
        "Session variables and the claims that they receive.",
        convert=_pairs,
    )
    json_key: str | None = text("ClaimsJsonContextKey", None, "Session variable that receives all claims as JSON.")
    address_key: str | None = text(
        "IpAddressContextKey",
        "request.ip_address",
        "Session variable that receives the client's address.",
        nullable=True,
    )
    use_role_from_claim: bool = flag(
        "UseRoleFromClaim", False, "Run every endpoint as the role that a claim names (`role_from_claim`)."
    )
    database_role_claim: str = text(
        "DatabaseRoleClaimType", "database_role", "Claim that names the role of PostgreSQL to run as."
    )
    database_roles: tuple[str, ...] = texts(
        "DatabaseRoles",
        (),
        "Roles that the claim may name; the service has to be a member of each. If the claim has several values, "
        "the first of this list applies; callers without any are refused.",
    )
    anonymous_role: str | None = text(
        "AnonymousDatabaseRole", None, "Role of anonymous callers. null: they are refused."
    )
    use_user_parameters: bool = flag("UseUserParameters", False, "Inject claims into parameters of every endpoint.")
    claims_from_anonymous: bool = flag(
        "ClaimsFromAnonymous",
        False,
        "Let anonymous callers supply parameters that receive claims. false: these are NULL, or have their default.",
    )
    parameters: tuple[tuple[str, str], ...] = text_map(
        "ParameterNameClaimsMapping",
        {"_user_id": "user_id", "_user_name": "user_name", "_user_roles": "user_roles"},
        "Parameters and the claims that they receive.",
        convert=_pairs,
    )
    json_parameter: str | None = text(
        "ClaimsJsonParameterName", "_user_claims", "Parameter that receives all claims as JSON.", nullable=True
    )
    address_parameter: str | None = text(
        "IpAddressParameterName", "_ip_address", "Parameter that receives the client's address.", nullable=True
    )
    login_path: str | None = text("LoginPath", None, "The endpoint with this path is a login.")
    logout_path: str | None = text("LogoutPath", None, "The endpoint with this path is a logout.")
    basic_auth = part(BasicOptions)
    second_factor: str | None = None
    """Column with further second factors of the user; None: there is no such column."""
    argon2: Argon2 | None = None
    """New hashes are made by Argon2id; None: by PBKDF2."""


@dataclass(frozen=True, slots=True)
class AuthOptions:
    schemes: Schemes
    login: LoginOptions
    basic: BasicOptions
    refresh_tokens: RefreshTokens
    database_roles: DatabaseRoles
    api_keys: ApiKeys | None
    session_check: SessionCheck | None
    cross_site: CrossSite | None
    """Protection of sessions by cookie against other sites. None: off."""
    second_factor: SecondFactorOptions | None
    """Second factor of logins. None: off."""
    external: ExternalOptions | None
    """Sign-in through external providers. None: off."""
    longest_session: int = LONGEST_SESSION
    """A longer session is not issued, because no request could send it."""

    @property
    def identity(self) -> IdentityClaims:
        return IdentityClaims(self.login.user_id, self.login.user_name, self.login.user_roles)

    @property
    def records_sign_in_time(self) -> bool:
        """Whether a session records when its user signed in. A proved second factor counts as a sign-in."""
        return self.login.note_sign_in_time or self.second_factor is not None
