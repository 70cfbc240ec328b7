"""Keys of login rows, of claims, and of their injection into routines (sign-in-6, sign-in-17)."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.auth.argon2_hash import LEAST_MEMORY
from rowcall.core.auth.options import BasicOptions
from rowcall.core.auth.password_hash import ITERATIONS
from rowcall.core.sections.declaration import choice, flag, integer, interval, part, section, text, text_map, texts
from rowcall.core.sections.values import filled


def _pairs(texts: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    return tuple(filled(texts).items())


@section("Service:AuthenticationOptions", "Login rows, claims, and their injection into routines.")
class AuthenticationOptions:
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
    obfuscate_auth_parameter_log_values = flag(
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
    distinguish_wrong_passwords = flag(
        "DistinguishWrongPasswords",
        False,
        "Respond to a wrong password with 404 and to an unknown user with 401. false: failed sign-ins look alike.",
    )
    roles_match_users = flag(
        "RolesMatchUsers", False, "Compare the roles of `authorize` also with the user's id and name."
    )
    note_sign_in_time = flag(
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
    use_user_context = flag("UseUserContext", False, "Set session variables from claims for every endpoint.")
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
    use_role_from_claim = flag(
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
    use_user_parameters = flag("UseUserParameters", False, "Inject claims into parameters of every endpoint.")
    claims_from_anonymous = flag(
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
    login_path = text("LoginPath", None, "The endpoint with this path is a login.")
    logout_path = text("LogoutPath", None, "The endpoint with this path is a logout.")
    basic: BasicOptions = part(BasicOptions)
