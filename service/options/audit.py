"""Audit of the configuration: findings about settings that weaken security (`core.operations.audit`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import log2

from rowcall.core.auth.schemes import CookieScheme
from rowcall.core.config import Settings
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.core.operations.audit import Finding, Severity
from rowcall.service.options.server.http import listener_plans
from rowcall.service.options.worker import WorkerOptions

ENOUGH_BITS = 128
"""Bits of entropy that a secret needs: the minimum for a key of its algorithm."""
EXAMPLES = ("secret", "changeme", "change-me", "change_me", "your-", "example", "password", "keep-this")
"""Parts of secrets that were copied from an example."""

_OPTIONS = "Service:AuthenticationOptions:"
_OPENED = (
    (
        _OPTIONS + "RolesMatchUsers",
        True,
        "a user who chooses the name of a role as user name is admitted like users with the role",
    ),
    (_OPTIONS + "ClaimsFromAnonymous", True, "anonymous callers can pretend to be any user"),
    (_OPTIONS + "DistinguishWrongPasswords", True, "an attacker can find out which user names exist"),
    ("Service:RequestHeadersFromClient", True, "a request can forge the headers that routines see"),
    (
        "Service:RequiresAuthorization",
        False,
        "an endpoint without an annotation about authorization is open to anonymous callers",
    ),
)
"""Key, the value that weakens security, and its consequence."""


def settings_findings(settings: Settings, options: WorkerOptions) -> Iterator[Finding]:
    """Yield a finding for each setting that weakens security. Raises `ConfigError`, and `StartupError` for invalid
    listeners."""
    for key, opens, consequence in _OPENED:
        if settings.value_of(key) is opens:
            yield _key(Severity.MEDIUM, "opened", key, consequence, f"leave {key} at its default")
    if options.auth.schemes.cookies:
        yield from _cookie_findings(settings, options)
    yield from _secret_findings(options)
    yield from _basic_findings(options)
    if options.statistics is not None and options.statistics.guarded.access.anonymous:
        message = "anonymous callers may read statistics, including the text of running queries"
        yield _key(Severity.HIGH, "statistics", "Stats:Enabled", message, "Stats:RequireAuthorization=true")
    if options.passkeys is not None and not options.passkeys.origins:
        message = "passkeys are accepted from pages of any host that a request names"
        key = "Auth:PasskeyAuth:RelyingPartyOrigins"
        yield _key(Severity.MEDIUM, "passkey-origins", key, message, "name the origins of your pages")
    if options.http.cors is not None and options.http.cors.origins is None:
        message = "pages of any site may read responses to requests without a session"
        yield _key(Severity.LOW, "any-origin", "Cors:AllowedOrigins", message, "name the origins of your pages")
    yield from _key_ring_findings(settings)


def _key(severity: Severity, code: str, key: str, message: str, remedy: str) -> Finding:
    return Finding(severity, code, key, message, remedy)


def _cookie_findings(settings: Settings, options: WorkerOptions) -> Iterator[Finding]:
    speaks_https = any(plan.address.secure for plan in listener_plans(settings)) or options.forwarding.enabled
    for scheme in options.auth.schemes.cookies:
        yield from _findings_of_cookie(scheme, speaks_https=speaks_https)
    if options.auth.cross_site is None:
        message = "pages of any site can send requests as a user who is signed in by cookie"
        yield _key(Severity.HIGH, "cross-site", "Auth:RefuseCrossSite", message, "Auth:RefuseCrossSite=true")


def _findings_of_cookie(scheme: CookieScheme, *, speaks_https: bool) -> Iterator[Finding]:
    about = f"cookie {scheme.cookie}"
    if scheme.secure == "None":
        message = "it never has the attribute Secure: an eavesdropper on a request without TLS obtains the session"
        yield Finding(Severity.HIGH, "cookie-secure", about, message, "CookieSecure=Always")
    elif scheme.secure == "SameAsRequest" and not speaks_https:
        message = "it is sent without Secure, since this service has no https address and trusts no proxy"
        yield Finding(Severity.MEDIUM, "cookie-secure", about, message, "CookieSecure=Always, behind TLS")
    if not scheme.http_only:
        message = "scripts of a page can read it"
        yield Finding(Severity.MEDIUM, "cookie-http-only", about, message, "CookieHttpOnly=true")


def _secret_findings(options: WorkerOptions) -> Iterator[Finding]:
    for scheme in options.auth.schemes.jwts:
        if scheme.secret is not None and (why := weakness(scheme.secret)):
            remedy = "a random JwtSecret from the environment, such as of `openssl rand -base64 48`"
            yield Finding(Severity.HIGH, "weak-key", f"scheme {scheme.name}", f"its secret {why}", remedy)
    # A JWK or a set of them is JSON.
    secret = None if options.postgrest is None else options.postgrest.jwt_secret
    if secret is not None and not secret.startswith("{") and (why := weakness(secret)):
        remedy = "a random secret from the environment, such as of `openssl rand -base64 48`"
        yield Finding(Severity.HIGH, "weak-key", "PostgRest:JwtSecret", f"the secret {why}", remedy)


def weakness(secret: str) -> str | None:
    """Return why the secret could be guessed, or None. The reason never contains the secret.

    The entropy is estimated from the frequencies of characters in the shortest repeating unit of the secret.
    """
    if any(word in secret.lower() for word in EXAMPLES):
        return "looks like an example"
    unit = secret[: (secret + secret).index(secret, 1)]
    bits = -sum(count * log2(count / len(unit)) for count in Counter(unit).values())
    if bits < ENOUGH_BITS:
        return f"has less than {ENOUGH_BITS} bits of entropy: characters repeat"
    return None


def _basic_findings(options: WorkerOptions) -> Iterator[Finding]:
    basic = options.auth.basic
    if basic.users and not basic.hashed:
        message = "passwords are stored in the configuration in plain text"
        key = _OPTIONS + "BasicAuth:UseDefaultPasswordHasher"
        yield _key(Severity.MEDIUM, "plain-passwords", key, message, "hashes of rowcall --hash")
    if basic.tls != "Required" and (basic.enabled or basic.users):
        message = "passwords are accepted from requests without TLS"
        yield _key(Severity.MEDIUM, "plain-requests", _OPTIONS + "BasicAuth:SslRequirement", message, "Required")


def _key_ring_findings(settings: Settings) -> Iterator[Finding]:
    keys = settings.read(DataProtection)
    if keys.enabled and keys.storage != "Default" and keys.key_encryption == "None":
        message = "the keys of sessions and encrypted columns are stored unencrypted"
        key = "DataProtection:KeyEncryption"
        yield _key(Severity.LOW, "plain-keys", key, message, "Certificate")
