"""Keys of login rows, of claims, and of their injection into routines (sign-in-6, sign-in-17)."""

from rowcall.core.config.keys import Key, choice, flag, integer, interval, section, text, text_map, texts

_P = "Service:AuthenticationOptions:"
_B = _P + "BasicAuth:"

ROWS: tuple[Key, ...] = (
    section("Service:AuthenticationOptions", "Login rows, claims, and how they reach routines."),
    text(_P + "DefaultAuthenticationType", None, "Accepted; no effect here: nothing shows the type of an identity."),
    text(_P + "StatusColumnName", "status", "Column of a login row: did it work."),
    text(_P + "SchemeColumnName", "scheme", "Column of a login row: which scheme."),
    text(_P + "BodyColumnName", "body", "Column of a login row: the body of the answer."),
    text(
        _P + "ResponseTypeColumnName",
        "application/json",
        "Content type of that body, whatever the name of this key says.",
    ),
    text(_P + "HashColumnName", "hash", "Column of a login row: hash to check the password against."),
    text(_P + "PasswordParameterNameContains", "pass", "A parameter with this in its name is the password."),
    text(_P + "DefaultUserIdClaimType", "user_id", "Claim that is the user's id."),
    text(_P + "DefaultNameClaimType", "user_name", "Claim that is the user's name."),
    text(_P + "DefaultRoleClaimType", "user_roles", "Claim that holds roles."),
    text(_P + "DefaultDisplayNameClaimType", "display_name", "Accepted; no effect here: nothing shows the name."),
    flag(_P + "SerializeAuthEndpointsResponse", False, "Send the login row in the answer too."),
    flag(_P + "ObfuscateAuthParameterLogValues", True, "Hide values of login, logout and sensitive endpoints in logs."),
    text(
        _P + "PasswordVerificationFailedCommand",
        None,
        "Command after a wrong password: $1 scheme, $2 user id, $3 user name, all text and all optional.",
    ),
    text(
        _P + "PasswordVerificationSucceededCommand",
        None,
        "Command after a right password, with the same parameters; $4 is a new hash to store where the stored one was "
        "made with another PasswordHashIterations, else NULL.",
    ),
    flag(
        _P + "DistinguishWrongPasswords",
        False,
        "Answer a wrong password with 404 and an unknown user with 401. Otherwise failed sign-ins look alike.",
    ),
    flag(_P + "RolesMatchUsers", False, "Compare the roles of `authorize` with the user's id and name too."),
    flag(
        _P + "NoteSignInTime",
        False,
        "Give sessions the claim `auth_time`, the moment of the sign-in, by which `authorize … within` judges.",
    ),
    interval(
        _P + "ImpersonationValid",
        "30 minutes",
        "How long somebody acts as another user (`impersonate`), whatever is refreshed. null is as long as a session.",
        nullable=True,
    ),
    integer(_P + "PasswordHashIterations", 600_000, "Rounds of PBKDF2 in new hashes: 600000 or more."),
    flag(_P + "UseUserContext", False, "Give claims to session variables for every endpoint."),
    text_map(
        _P + "ContextKeyClaimsMapping",
        {"request.user_id": "user_id", "request.user_name": "user_name", "request.user_roles": "user_roles"},
        "Session variable to claim.",
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
        "Roles that may be named there; the service has to be a member of each. Of several values the first of these "
        "counts, and who has none is refused.",
    ),
    text(_P + "AnonymousDatabaseRole", None, "Role for who is not signed in. null refuses them."),
    flag(_P + "UseUserParameters", False, "Give claims to parameters of every endpoint."),
    flag(
        _P + "ClaimsFromAnonymous",
        False,
        "Let callers who are not signed in supply parameters that are filled from claims. Otherwise these are NULL, or "
        "have their default.",
    ),
    text_map(
        _P + "ParameterNameClaimsMapping",
        {"_user_id": "user_id", "_user_name": "user_name", "_user_roles": "user_roles"},
        "Parameter to claim.",
    ),
    text(_P + "ClaimsJsonParameterName", "_user_claims", "Parameter that receives all claims as JSON.", nullable=True),
    text(_P + "IpAddressParameterName", "_ip_address", "Parameter that receives the client's address.", nullable=True),
    text(_P + "LoginPath", None, "The endpoint with this path is a login."),
    text(_P + "LogoutPath", None, "The endpoint with this path is a logout."),
    section(_P + "BasicAuth", "User name and password with each request."),
    flag(_B + "Enabled", False, "Ask for them on all endpoints."),
    text(_B + "Realm", None, "Realm that the browser shows. null is a built-in name."),
    text_map(_B + "Users", {}, "User name to password, or to its hash.", secret=True),
    choice(
        _B + "SslRequirement",
        "Required Warning Ignore",
        "Required",
        "Without Ssl:Enabled: do not start, start with a warning, or say nothing.",
    ),
    flag(_B + "UseDefaultPasswordHasher", True, "Passwords above are hashes, as `rowcall --hash` prints them."),
    text(_B + "ChallengeCommand", None, "Query that checks name and password and gives claims."),
)
