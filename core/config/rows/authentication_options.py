"""Keys of login rows, of claims, and of their injection into routines (sign-in-6, sign-in-17)."""

from rowcall.core.auth.argon2_hash import LEAST_MEMORY
from rowcall.core.auth.password_hash import ITERATIONS
from rowcall.core.sections.keys import Key, choice, flag, integer, interval, section, text, text_map, texts

_P = "Service:AuthenticationOptions:"
_B = _P + "BasicAuth:"

ROWS: tuple[Key, ...] = (
    section("Service:AuthenticationOptions", "Login rows, claims, and their injection into routines."),
    text(_P + "DefaultAuthenticationType", None, "Accepted; no effect here: nothing shows the type of an identity."),
    text(_P + "StatusColumnName", "status", "Column of a login row: whether the login succeeded."),
    text(_P + "SchemeColumnName", "scheme", "Column of a login row: name of the scheme."),
    text(_P + "BodyColumnName", "body", "Column of a login row: body of the response."),
    text(
        _P + "ResponseTypeColumnName",
        "application/json",
        "Content type of that body (not a column, in spite of the name of the key).",
    ),
    text(_P + "HashColumnName", "hash", "Column of a login row: hash with which the password is verified."),
    text(_P + "PasswordParameterNameContains", "pass", "A parameter whose name contains this text is the password."),
    text(_P + "DefaultUserIdClaimType", "user_id", "Claim that is the user's id."),
    text(_P + "DefaultNameClaimType", "user_name", "Claim that is the user's name."),
    text(_P + "DefaultRoleClaimType", "user_roles", "Claim that holds roles."),
    text(_P + "DefaultDisplayNameClaimType", "display_name", "Accepted; no effect here: nothing shows the name."),
    flag(_P + "SerializeAuthEndpointsResponse", False, "Include the login row in the response."),
    flag(_P + "ObfuscateAuthParameterLogValues", True, "Hide values of login, logout and sensitive endpoints in logs."),
    text(
        _P + "PasswordVerificationFailedCommand",
        None,
        "Command after a wrong password: $1 scheme, $2 user id, $3 user name, all text and all optional.",
    ),
    text(
        _P + "PasswordVerificationSucceededCommand",
        None,
        "Command after a correct password, with the same parameters; $4 is a new hash to store if the stored one has "
        "another algorithm or work factor, else NULL.",
    ),
    flag(
        _P + "DistinguishWrongPasswords",
        False,
        "Respond to a wrong password with 404 and to an unknown user with 401. false: failed sign-ins look alike.",
    ),
    flag(_P + "RolesMatchUsers", False, "Compare the roles of `authorize` also with the user's id and name."),
    flag(
        _P + "NoteSignInTime",
        False,
        "Add the claim `auth_time`, the time of the sign-in, to sessions; `authorize … within` requires it.",
    ),
    interval(
        _P + "ImpersonationValid",
        "30 minutes",
        "Lifetime of an impersonation (`impersonate`); refreshing tokens does not extend it. null: that of a session.",
        nullable=True,
    ),
    choice(
        _P + "PasswordHashAlgorithm",
        "Pbkdf2 Argon2id",
        "Pbkdf2",
        "Algorithm of new password hashes; hashes of both are verified. Argon2id needs the extra rowcall[argon2].",
    ),
    integer(_P + "Argon2Memory", 65_536, "Memory of Argon2id in KiB, in new hashes.", minimum=LEAST_MEMORY),
    integer(_P + "Argon2Iterations", 3, "Passes of Argon2id in new hashes.", minimum=1),
    integer(_P + "PasswordHashIterations", ITERATIONS, "Rounds of PBKDF2 in new hashes.", minimum=ITERATIONS),
    flag(_P + "UseUserContext", False, "Set session variables from claims for every endpoint."),
    text_map(
        _P + "ContextKeyClaimsMapping",
        {"request.user_id": "user_id", "request.user_name": "user_name", "request.user_roles": "user_roles"},
        "Session variables and the claims that they receive.",
    ),
    text(_P + "ClaimsJsonContextKey", None, "Session variable that receives all claims as JSON."),
    text(
        _P + "IpAddressContextKey",
        "request.ip_address",
        "Session variable that receives the client's address.",
        nullable=True,
    ),
    flag(_P + "UseRoleFromClaim", False, "Run every endpoint as the role that a claim names (`role_from_claim`)."),
    text(_P + "DatabaseRoleClaimType", "database_role", "Claim that names the role of PostgreSQL to run as."),
    texts(
        _P + "DatabaseRoles",
        (),
        "Roles that the claim may name; the service has to be a member of each. If the claim has several values, the "
        "first of this list applies; callers without any are refused.",
    ),
    text(_P + "AnonymousDatabaseRole", None, "Role of anonymous callers. null: they are refused."),
    flag(_P + "UseUserParameters", False, "Inject claims into parameters of every endpoint."),
    flag(
        _P + "ClaimsFromAnonymous",
        False,
        "Let anonymous callers supply parameters that receive claims. false: these are NULL, or have their default.",
    ),
    text_map(
        _P + "ParameterNameClaimsMapping",
        {"_user_id": "user_id", "_user_name": "user_name", "_user_roles": "user_roles"},
        "Parameters and the claims that they receive.",
    ),
    text(_P + "ClaimsJsonParameterName", "_user_claims", "Parameter that receives all claims as JSON.", nullable=True),
    text(_P + "IpAddressParameterName", "_ip_address", "Parameter that receives the client's address.", nullable=True),
    text(_P + "LoginPath", None, "The endpoint with this path is a login."),
    text(_P + "LogoutPath", None, "The endpoint with this path is a logout."),
    section(_P + "BasicAuth", "User name and password with each request."),
    flag(_B + "Enabled", False, "Require HTTP Basic on all endpoints."),
    text(_B + "Realm", None, "Realm that the browser shows. null: a built-in name."),
    text_map(_B + "Users", {}, "User names and their passwords or hashes.", secret=True),
    choice(
        _B + "SslRequirement",
        "Required Warning Ignore",
        "Required",
        "Without Ssl:Enabled: do not start, start with a warning, or start without one.",
    ),
    flag(
        _B + "UseDefaultPasswordHasher", True, "Whether passwords in Users are hashes, as `rowcall --hash` prints them."
    ),
    text(_B + "ChallengeCommand", None, "Query that checks name and password and returns claims."),
)
