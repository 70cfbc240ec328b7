"""The keys of PostgREST's configuration: their names there, in this service, and in the environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rowcall.core.postgrest.options import OPENAPI_MODES, TRANSACTION_ENDS

APP_SETTINGS = "app.settings."
ENVIRONMENT_PREFIX = "PGRST_"


@dataclass(frozen=True, slots=True)
class ConfigurationKey:
    """One key.

    postgrest: its name in PostgREST. name: in the section `PostgRest`. default, meaning: for the manual. in_database:
    the database may set it. aliases: former names in PostgREST.
    """

    postgrest: str
    name: str
    default: str | None
    meaning: str
    in_database: bool = True
    secret: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def is_flag(self) -> bool:
        return self.default in ("true", "false")

    @property
    def is_number(self) -> bool:
        return self.postgrest in _NUMBERS

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values; empty: any text is allowed."""
        return _CHOICES.get(self.postgrest, ())


_NUMBERS = ("db-max-rows", "jwt-cache-max-entries", "admin-server-port")
_CHOICES = {
    "db-tx-end": TRANSACTION_ENDS,
    "openapi-mode": OPENAPI_MODES,
    "client-error-verbosity": ("verbose", "minimal"),
}


def _key(
    postgrest: str,
    name: str,
    default: str | None,
    meaning: str,
    *aliases: str,
    in_database: bool = True,
    secret: bool = False,
) -> ConfigurationKey:
    return ConfigurationKey(postgrest, name, default, meaning, in_database, secret, aliases)


INTERFACE_KEYS: tuple[ConfigurationKey, ...] = (
    _key(
        "db-schemas",
        "Schemas",
        "public",
        "Exposed schemas, separated by commas; the first one is the default.",
        "db-schema",
    ),
    _key("db-extra-search-path", "ExtraSearchPath", "public", "Schemas behind the exposed one in the search path."),
    _key("db-anon-role", "AnonymousRole", None, "Role of requests without a token. null: they are refused."),
    _key("db-pre-request", "PreRequest", None, "Function that runs before each request.", "pre-request"),
    _key("db-max-rows", "MaxRows", None, "Most rows of a level of a read. null: no limit.", "max-rows"),
    _key("db-aggregates-enabled", "AggregatesEnabled", "false", "Allow aggregates in `select`."),
    _key("db-plan-enabled", "PlanEnabled", "false", "Allow execution plans as a media type."),
    _key(
        "db-tx-end",
        "TransactionEnd",
        "commit",
        "End of transactions: commit, commit-allow-override, rollback or rollback-allow-override.",
    ),
    _key(
        "db-hoisted-tx-settings",
        "HoistedTransactionSettings",
        "statement_timeout, plan_filter.statement_cost_limit, default_transaction_isolation",
        "Settings of functions that hold for their whole transaction.",
    ),
    _key("db-root-spec", "RootFunction", None, "Function behind the root path.", "root-spec"),
    _key("db-prepared-statements", "PreparedStatements", "true", "Prepare statements by name."),
    _key("db-channel", "Channel", "pgrst", "Channel of NOTIFY for reloads.", in_database=False),
    _key("db-channel-enabled", "ChannelEnabled", "true", "Listen for NOTIFY on that channel.", in_database=False),
    _key(
        "db-config",
        "DatabaseConfiguration",
        "true",
        "Read settings `pgrst.…` of the login role too.",
        in_database=False,
    ),
    _key("db-pre-config", "PreConfig", None, "Function that sets `pgrst.…` before they are read."),
    _key("jwt-secret", "JwtSecret", None, "Secret, JWK or JWK set that tokens are verified with.", secret=True),
    _key("jwt-secret-is-base64", "JwtSecretIsBase64", "false", "The secret is in base64.", "secret-is-base64"),
    _key("jwt-aud", "JwtAudience", None, "Audience that tokens must have, if they have one."),
    _key(
        "jwt-role-claim-key",
        "JwtRoleClaimKey",
        "$.role",
        "JSON path of the role in the claims of a token.",
        "role-claim-key",
    ),
    _key("jwt-cache-max-entries", "JwtCacheMaxEntries", "1000", "Verified tokens that a worker remembers; 0: none."),
    _key(
        "openapi-mode",
        "OpenApiMode",
        "follow-privileges",
        "Description at the root path: follow-privileges, ignore-privileges or disabled.",
    ),
    _key("openapi-security-active", "OpenApiSecurityActive", "false", "The description declares tokens."),
    _key(
        "openapi-server-proxy-uri",
        "OpenApiServerProxyUri",
        None,
        "Public address of the service.",
        "server-proxy-uri",
    ),
    _key("client-error-verbosity", "ClientErrorVerbosity", "verbose", "verbose, or minimal without details and hint."),
    _key(
        "url-use-legacy-target-names",
        "UrlUseLegacyTargetNames",
        "true",
        "An embed with an alias may be addressed by its name.",
    ),
    _key("server-cors-allowed-origins", "CorsAllowedOrigins", None, "Origins, separated by commas. null: all."),
    _key("server-timing-enabled", "ServerTimingEnabled", "false", "Send the header Server-Timing."),
    _key("server-trace-header", "ServerTraceHeader", None, "Header of requests that responses repeat."),
    _key(
        "admin-server-host",
        "AdminServerHost",
        None,
        "Host of the admin server. null: 127.0.0.1; in a file of PostgREST, that of the service.",
        in_database=False,
    ),
    _key(
        "admin-server-port",
        "AdminServerPort",
        None,
        "Port of the admin server. null: there is none.",
        in_database=False,
    ),
    _key(
        "admin-server-unix-socket",
        "AdminServerUnixSocket",
        None,
        "Path of the socket of the admin server, instead of its port.",
        in_database=False,
    ),
)
SERVICE_KEYS = (
    "db-uri",
    "db-pool",
    "db-pool-acquisition-timeout",
    "db-pool-max-idletime",
    "db-pool-max-lifetime",
    "db-pool-automatic-recovery",
    "server-host",
    "server-port",
    "server-unix-socket",
    "server-unix-socket-mode",
    "server-reuseport",
    "log-level",
    "log-query",
)
"""Keys for which this service has keys in other sections: connection, pool, listener, log."""
WITHOUT_EFFECT = {
    "server-reuseport": (("false",), "workers share the sockets of their parent process"),
    "db-pool-automatic-recovery": (("true",), "lost connections are always opened again"),
    "log-query": (("false", "disabled"), "log_statement of PostgreSQL logs the statements"),
}
"""Keys that this service does not need: values that mean what it does anyway, and why others have no effect."""
_ALIASES = {alias: key.postgrest for key in INTERFACE_KEYS for alias in key.aliases} | {
    "db-pool-timeout": "db-pool-max-idletime"
}
_KNOWN = {key.postgrest for key in INTERFACE_KEYS} | set(SERVICE_KEYS)


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return key → text for the variables `PGRST_…`. Former names of keys are replaced by the present ones. The result
    also has unknown keys."""
    result: dict[str, str] = {}
    for name, text in environment.items():
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        rest = name.removeprefix(ENVIRONMENT_PREFIX)
        if rest.startswith("APP_SETTINGS_"):
            result[APP_SETTINGS + rest.removeprefix("APP_SETTINGS_").lower()] = text
        else:
            result[rest.lower().replace("_", "-")] = text
    return present_names(result)


def present_names(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts by the present names of their keys. If a key has texts under two names, that of the present one
    counts."""
    former = {_ALIASES[key]: text for key, text in texts.items() if key in _ALIASES}
    return former | {key: text for key, text in texts.items() if key not in _ALIASES}


def ineffective_keys(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys whose values have no effect, with the reason. texts: by key."""
    return [
        (key, why)
        for key, (supported, why) in WITHOUT_EFFECT.items()
        if texts.get(key, "").strip().lower() not in (*supported, "")
    ]


def unknown_keys(texts: Iterable[str]) -> list[str]:
    """Return the keys that PostgREST does not have, in alphabetical order. texts: the keys, by their present names
    (`present_names`); former names count as unknown."""
    return sorted(key for key in texts if key not in _KNOWN and not key.startswith(APP_SETTINGS))
