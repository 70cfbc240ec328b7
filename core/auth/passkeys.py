"""Options of passkeys, and access to the rows of their commands; plain data (passkeys-1 to passkeys-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowcall.core.auth.login import Cell
from rowcall.core.sections.declaration import choice, flag, integer, part, section, text, texts
from rowcall.core.sections.values import as_set, or_empty, path_like, stripped_or_none

REQUIRED = "required"

ALGORITHMS = frozenset({-7, -35, -36, -37, -38, -39, -257, -258, -259})
"""COSE algorithms of accepted keys: ECDSA, and RSA with either padding."""
OFFERED = (-7, -257)
"""COSE algorithms that browsers are offered: every authenticator has one of them."""


LONGEST_TIMEOUT = 1440
"""Maximum of `ChallengeTimeoutMinutes`."""

_path = path_like("/api/passkey/login")


def _lower_or_none(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _milliseconds(minutes: int) -> int:
    """Return the milliseconds of a number of minutes. Raises ValueError above `LONGEST_TIMEOUT`."""
    if minutes > LONGEST_TIMEOUT:
        raise ValueError(f"the most allowed is {LONGEST_TIMEOUT}")
    return minutes * 60_000


@section("Auth:PasskeyAuth")
class PasskeyColumns:
    """Names of the columns of the commands' rows, compared in any case."""

    status: str = text("StatusColumnName", "status", "Result column that holds the status.")
    message: str = text("MessageColumnName", "message", "Result column that holds the message.")
    challenge: str = text("ChallengeColumnName", "challenge", "Result column that holds the challenge.")
    challenge_id: str = text(
        "ChallengeIdColumnName", "challenge_id", "Result column that holds the id of the challenge."
    )
    user_name: str = text("UserNameColumnName", "user_name", "Result column that holds the user's name.")
    display_name: str = text(
        "UserDisplayNameColumnName", "user_display_name", "Result column that holds the name to show."
    )
    user_handle: str = text("UserHandleColumnName", "user_handle", "Result column that holds the user handle.")
    exclude: str = text(
        "ExcludeCredentialsColumnName", "exclude_credentials", "Result column that holds keys the user has already."
    )
    allow: str = text(
        "AllowCredentialsColumnName", "allow_credentials", "Result column that holds keys that may log in."
    )
    public_key: str = text("PublicKeyColumnName", "public_key", "Result column that holds the public key.")
    algorithm: str = text(
        "PublicKeyAlgorithmColumnName", "public_key_algorithm", "Result column that holds the COSE algorithm."
    )
    sign_count: str = text("SignCountColumnName", "sign_count", "Result column that holds the counter of signatures.")


@section("Auth:PasskeyAuth", switch="EnableRegister")
class PasskeyPaths:
    """Paths of the endpoints; None: there is no such endpoint. The switch of this section, `EnableRegister`, applies to
    `register_options` and `register` only."""

    add_options: str | None = text(
        "AddPasskeyOptionsPath",
        "/api/passkey/add/options",
        "POST path: options for another key of the signed-in user.",
        nullable=True,
        convert=_path,
    )
    add: str | None = text(
        "AddPasskeyPath", "/api/passkey/add", "POST path: store the other key.", nullable=True, convert=_path
    )
    register_options: str | None = text(
        "RegistrationOptionsPath",
        "/api/passkey/register/options",
        "POST path: options for a new user.",
        nullable=True,
        convert=_path,
    )
    register: str | None = text(
        "RegistrationPath",
        "/api/passkey/register",
        "POST path: store the new user and the key.",
        nullable=True,
        convert=_path,
    )
    login_options: str | None = text(
        "LoginOptionsPath",
        "/api/passkey/login/options",
        "POST path: options for a login.",
        nullable=True,
        convert=_path,
    )
    login: str | None = text("LoginPath", "/api/passkey/login", "POST path: log in.", nullable=True, convert=_path)


@section("Auth:PasskeyAuth")
class PasskeyCommands:
    """The SQL commands of passkeys."""

    challenge_add: str = text(
        "ChallengeAddExistingUserCommand",
        "select * from passkey_challenge_add_existing($1,$2)",
        "Query that creates a challenge for the signed-in user: $1 claims, $2 body (both JSON).",
    )
    challenge_register: str = text(
        "ChallengeRegistrationCommand",
        "select * from passkey_challenge_registration($1)",
        "Query that creates a challenge for a new user: $1 body (JSON).",
    )
    challenge_login: str = text(
        "ChallengeAuthenticationCommand",
        "select * from passkey_challenge_authentication($1,$2)",
        "Query that creates a challenge for a login: $1 user name, $2 body (JSON).",
    )
    verify: str = text(
        "VerifyChallengeCommand",
        "select * from passkey_verify_challenge($1,$2)",
        "Query that returns a stored challenge and deletes it: $1 id, $2 operation.",
    )
    counts: bool = flag("ValidateSignCount", True, "Check the signature counter, and store it.")
    credential: str = text(
        "AuthenticateDataCommand",
        "select * from passkey_authenticate_data($1)",
        "Query that finds a stored key: $1 credential id.",
    )
    complete_add: str = text(
        "CompleteAddExistingUserCommand",
        "select * from passkey_complete_add_existing($1,$2,$3,$4,$5,$6,$7,$8)",
        "Query that stores another key of a user: $1 credential id, $2 user handle, $3 key, $4 algorithm, $5 "
        "transports, $6 backup eligible, $7 user context, $8 analytics; $9, if it is used, the claims of the "
        "caller (JSON).",
    )
    complete_register: str = text(
        "CompleteRegistrationCommand",
        "select * from passkey_complete_registration($1,$2,$3,$4,$5,$6,$7,$8)",
        "Query that stores a new user and the key: $1 to $8 as for another key.",
    )
    complete_login: str = text(
        "CompleteAuthenticateCommand",
        "select * from passkey_complete_authenticate($1,$2,$3,$4)",
        "Query that completes a login: $1 credential id, $2 counter, $3 user context, $4 analytics. Returns a "
        "login row.",
    )


@section("Auth:PasskeyAuth", "Passkeys (WebAuthn).")
class PasskeyOptions:
    """Options of passkeys. timeout: milliseconds for which a challenge is valid."""

    enabled: bool = flag("Enabled", False, "Offer passkeys.")
    enable_register = flag("EnableRegister", False, "Let new users register with a passkey.")
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Rate limit of all these paths.")
    connection: str | None = text("ConnectionName", None, "Connection that runs the commands. null: the main one.")
    retry: str | None = text("CommandRetryStrategy", "default", "Retry strategy of the commands.", nullable=True)
    relying_party: str | None = text(
        "RelyingPartyId", None, "Domain of the passkeys. null: the host of the request.", convert=_lower_or_none
    )
    relying_party_name: str = text(
        "RelyingPartyName", None, "Name that the user sees. null: ApplicationName.", convert=or_empty
    )
    origins: frozenset[str] = texts(
        "RelyingPartyOrigins",
        (),
        "Origins whose pages may use the passkeys. Empty: the origin of the request, with a warning at the start.",
        convert=as_set,
    )
    paths: PasskeyPaths = part(PasskeyPaths)
    redis: str | None = text(
        "RedisConfiguration",
        None,
        "Connection string of Redis, in which several hosts share issued challenges with their user and user "
        "context. A challenge that no host has issued is refused.",
        secret=True,
        convert=stripped_or_none,
    )
    issued_only: bool = flag(
        "IssuedChallengesOnly",
        False,
        "Refuse a login whose challenge this host has not issued: for services on one host, or with sticky "
        "sessions. New keys always need a challenge that this host or Redis knows.",
    )
    timeout: int = integer(
        "ChallengeTimeoutMinutes", 5, "Lifetime of a challenge in minutes.", minimum=1, convert=_milliseconds
    )
    user_verification: str = choice(
        "UserVerificationRequirement", "preferred required discouraged", "required", "WebAuthn userVerification."
    )
    resident_key: str = choice(
        "ResidentKeyRequirement", "preferred required discouraged", "required", "WebAuthn residentKey."
    )
    attestation: str = choice(
        "AttestationConveyance", "none indirect direct enterprise", "none", "WebAuthn attestation."
    )
    commands: PasskeyCommands = part(PasskeyCommands)
    address_key: str = text(
        "ClientAnalyticsIpKey",
        "ip",
        "Key in the analytics JSON that receives the client's address.",
        empty=True,
        convert=or_empty,
    )
    columns: PasskeyColumns = part(PasskeyColumns)


class Row:
    """The first row of a command. Names of columns are compared in any case; of equal names, the first column
    counts."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells: Mapping[str, Cell] = {cell.name.lower(): cell for cell in reversed(cells)}
        self.cells = cells

    def text(self, column: str) -> str | None:
        """Return the text of a column; None: NULL, or there is no such column."""
        cell = self._cells.get(column.lower())
        return None if cell is None else cell.text

    def has(self, column: str) -> bool:
        return column.lower() in self._cells

    def status(self, column: str) -> int:
        """Return the HTTP status in a column; 200 if there is no such column. Raises `ValueError` for NULL, and for a
        value that is no status from 200 to 599."""
        if not self.has(column):
            return 200
        status = int(self.text(column) or "none")
        if not 200 <= status <= 599:
            raise ValueError(f"{status} is no HTTP status of a response")
        return status


def bytea(text: str | None) -> bytes | None:
    r"""Return the bytes of PostgreSQL's text form, such as `\x0102`; None for None. Raises ValueError otherwise."""
    if text is None:
        return None
    if not text.startswith("\\x"):
        raise ValueError("not the text of a bytea")
    return bytes.fromhex(text[2:])


def bytea_text(content: bytes) -> bytes:
    r"""Return PostgreSQL's text form of bytes, such as `\x0102`."""
    return b"\\x" + content.hex().encode()
