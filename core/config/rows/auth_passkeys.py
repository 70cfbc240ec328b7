"""Keys of sign-in with passkeys (WebAuthn)."""

from rowcall.core.sections.keys import Key, choice, flag, integer, section, text, texts

_P = "Auth:PasskeyAuth:"
_COMPLETE = "$1,$2,$3,$4,$5,$6,$7,$8"


def _path(name: str, default: str, meaning: str) -> Key:
    return text(_P + name, default, f"POST path: {meaning}", nullable=True)


def _column(name: str, default: str, meaning: str) -> Key:
    return text(f"{_P}{name}ColumnName", default, f"Result column that holds {meaning}.")


ROWS: tuple[Key, ...] = (
    section("Auth:PasskeyAuth", "Passkeys (WebAuthn)."),
    flag(_P + "Enabled", False, "Offer passkeys."),
    flag(_P + "EnableRegister", False, "Let new users register with a passkey."),
    text(_P + "RateLimiterPolicy", None, "Rate limit of all these paths."),
    text(_P + "ConnectionName", None, "Connection that runs the commands. null: the main one."),
    text(_P + "CommandRetryStrategy", "default", "Retry strategy of the commands.", nullable=True),
    text(_P + "RelyingPartyId", None, "Domain of the passkeys. null: the host of the request."),
    text(_P + "RelyingPartyName", None, "Name that the user sees. null: ApplicationName."),
    texts(
        _P + "RelyingPartyOrigins",
        (),
        "Origins whose pages may use the passkeys. Empty: the origin of the request, with a warning at the start.",
    ),
    _path("AddPasskeyOptionsPath", "/api/passkey/add/options", "options for another key of the signed-in user."),
    _path("AddPasskeyPath", "/api/passkey/add", "store the other key."),
    _path("RegistrationOptionsPath", "/api/passkey/register/options", "options for a new user."),
    _path("RegistrationPath", "/api/passkey/register", "store the new user and the key."),
    _path("LoginOptionsPath", "/api/passkey/login/options", "options for a login."),
    _path("LoginPath", "/api/passkey/login", "log in."),
    text(
        _P + "RedisConfiguration",
        None,
        "Connection string of Redis, in which several hosts share issued challenges with their user and user context. "
        "A challenge that no host has issued is refused.",
        secret=True,
    ),
    flag(
        _P + "IssuedChallengesOnly",
        False,
        "Refuse a login whose challenge this host has not issued: for services on one host, or with sticky sessions. "
        "New keys always need a challenge that this host or Redis knows.",
    ),
    integer(_P + "ChallengeTimeoutMinutes", 5, "Lifetime of a challenge in minutes.", minimum=1),
    choice(
        _P + "UserVerificationRequirement", "preferred required discouraged", "required", "WebAuthn userVerification."
    ),
    choice(_P + "ResidentKeyRequirement", "preferred required discouraged", "required", "WebAuthn residentKey."),
    choice(_P + "AttestationConveyance", "none indirect direct enterprise", "none", "WebAuthn attestation."),
    text(
        _P + "ChallengeAddExistingUserCommand",
        "select * from passkey_challenge_add_existing($1,$2)",
        "Query that creates a challenge for the signed-in user: $1 claims, $2 body (both JSON).",
    ),
    text(
        _P + "ChallengeRegistrationCommand",
        "select * from passkey_challenge_registration($1)",
        "Query that creates a challenge for a new user: $1 body (JSON).",
    ),
    text(
        _P + "ChallengeAuthenticationCommand",
        "select * from passkey_challenge_authentication($1,$2)",
        "Query that creates a challenge for a login: $1 user name, $2 body (JSON).",
    ),
    text(
        _P + "VerifyChallengeCommand",
        "select * from passkey_verify_challenge($1,$2)",
        "Query that returns a stored challenge and deletes it: $1 id, $2 operation.",
    ),
    flag(_P + "ValidateSignCount", True, "Check the signature counter, and store it."),
    text(
        _P + "AuthenticateDataCommand",
        "select * from passkey_authenticate_data($1)",
        "Query that finds a stored key: $1 credential id.",
    ),
    text(
        _P + "CompleteAddExistingUserCommand",
        f"select * from passkey_complete_add_existing({_COMPLETE})",
        "Query that stores another key of a user: $1 credential id, $2 user handle, $3 key, $4 algorithm, "
        "$5 transports, $6 backup eligible, $7 user context, $8 analytics; $9, if it is used, the claims of the caller "
        "(JSON).",
    ),
    text(
        _P + "CompleteRegistrationCommand",
        f"select * from passkey_complete_registration({_COMPLETE})",
        "Query that stores a new user and the key: $1 to $8 as for another key.",
    ),
    text(
        _P + "CompleteAuthenticateCommand",
        "select * from passkey_complete_authenticate($1,$2,$3,$4)",
        "Query that completes a login: $1 credential id, $2 counter, $3 user context, $4 analytics. Returns a login "
        "row.",
    ),
    text(_P + "ClientAnalyticsIpKey", "ip", "Key in the analytics JSON that receives the client's address."),
    _column("Status", "status", "the status"),
    _column("Message", "message", "the message"),
    _column("Challenge", "challenge", "the challenge"),
    _column("ChallengeId", "challenge_id", "the id of the challenge"),
    _column("UserName", "user_name", "the user's name"),
    _column("UserDisplayName", "user_display_name", "the name to show"),
    _column("UserHandle", "user_handle", "the user handle"),
    _column("ExcludeCredentials", "exclude_credentials", "keys the user has already"),
    _column("AllowCredentials", "allow_credentials", "keys that may log in"),
    _column("PublicKey", "public_key", "the public key"),
    _column("PublicKeyAlgorithm", "public_key_algorithm", "the COSE algorithm"),
    _column("SignCount", "sign_count", "the counter of signatures"),
)
