"""Options of PostgREST's interface, and how texts of a configuration become options.

The keys are those of PostgREST, because three sources name them so: its file, the environment and settings of the login
role. The section `PostgRest` is converted to the same texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rowcall.core.endpoint.capabilities import NoticeLevel

HOISTED = ("statement_timeout", "plan_filter.statement_cost_limit", "default_transaction_isolation")
TRANSACTION_ENDS = ("commit", "commit-allow-override", "rollback", "rollback-allow-override")
OPENAPI_MODES = ("follow-privileges", "ignore-privileges", "disabled")
APP_SETTINGS = "app.settings."
ANONYMOUS_CACHE = "anonymous-cache"
"""Key of a text in seconds, which PostgREST does not have."""
PUBLISH_NOTICES = "publish-notices"
"""Key of the value of a `NoticeLevel`, which PostgREST does not have."""
FORBIDDEN_SCHEMAS = ("pg_catalog", "information_schema")


class InvalidOptionError(ValueError):
    """A value cannot be used. The message names the key of PostgREST."""


@dataclass(frozen=True, slots=True)
class PostgRestOptions:
    """Options of PostgREST's interface. Times in seconds."""

    path: str = "/"
    rate_limiter: str | None = None
    """Name of the policy that limits all requests."""
    anonymous_cache: float = 0.0
    """Lifetime of cached results of anonymous callers; 0: they are not cached."""
    publish_notices: NoticeLevel | None = None
    """Notices of this level become events; None: none do."""
    schemas: tuple[str, ...] = ("public",)
    extra_search_path: tuple[str, ...] = ("public",)
    anonymous_role: str | None = None
    pre_request: str | None = None
    max_rows: int | None = None
    aggregates: bool = False
    plans: bool = False
    transaction_end: str = "commit"
    hoisted_settings: tuple[str, ...] = HOISTED
    root_function: str | None = None
    prepared_statements: bool = True
    channel: str = "pgrst"
    channel_enabled: bool = True
    database_configuration: bool = True
    pre_config: str | None = None
    jwt_secret: str | None = field(default=None, repr=False)
    jwt_secret_is_base64: bool = False
    jwt_audience: str | None = None
    jwt_role_claim_key: str = "$.role"
    jwt_cache_max_entries: int = 1000
    openapi_mode: str = "follow-privileges"
    openapi_security_active: bool = False
    openapi_server_proxy_uri: str | None = None
    minimal_errors: bool = False
    legacy_target_names: bool = True
    cors_allowed_origins: tuple[str, ...] | None = None
    """None: all origins."""
    server_timing: bool = False
    trace_header: str | None = None
    app_settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    admin_host: str = "127.0.0.1"
    admin_port: int | None = None
    """None: there is no admin server, unless it has a socket."""
    admin_socket: str | None = None
    """Path of the socket of the admin server. It has precedence over the port."""
    texts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The texts by key from which these options were read."""

    @property
    def rolls_back(self) -> bool:
        """Whether transactions end with a rollback unless a request asks for a commit."""
        return self.transaction_end.startswith("rollback")

    @property
    def end_may_be_overridden(self) -> bool:
        """Whether `Prefer: tx` has an effect."""
        return self.transaction_end.endswith("-allow-override")


def options_of(texts: Mapping[str, str]) -> PostgRestOptions:
    """Return the options for texts by key of PostgREST. An absent or empty text gives the default, but an empty
    `db-extra-search-path` or `db-hoisted-tx-settings` means no names. Raises `InvalidOptionError`."""
    read = _Reader(texts)
    schemas = read.names("db-schemas", ("public",))
    for schema in schemas:
        if schema in FORBIDDEN_SCHEMAS:
            raise InvalidOptionError(f"db-schemas does not allow schema: '{schema}'")
    origins = read.names("server-cors-allowed-origins", ())
    anonymous_cache = float(read.text(ANONYMOUS_CACHE) or 0)
    level = read.text(PUBLISH_NOTICES)
    if anonymous_cache and read.text("db-pre-request") is not None:
        raise InvalidOptionError(
            "a cached response would skip the function of db-pre-request: AnonymousCache needs none"
        )
    return PostgRestOptions(
        path=read.text("path") or "/",
        rate_limiter=read.text("rate-limiter-policy"),
        anonymous_cache=anonymous_cache,
        publish_notices=None if level is None else NoticeLevel(level),
        schemas=schemas,
        extra_search_path=read.names("db-extra-search-path", ("public",), empty=True),
        anonymous_role=read.text("db-anon-role"),
        pre_request=read.text("db-pre-request"),
        max_rows=read.number("db-max-rows"),
        aggregates=read.flag("db-aggregates-enabled", default=False),
        plans=read.flag("db-plan-enabled", default=False),
        transaction_end=read.choice("db-tx-end", TRANSACTION_ENDS),
        hoisted_settings=read.names("db-hoisted-tx-settings", HOISTED, empty=True),
        root_function=read.text("db-root-spec"),
        prepared_statements=read.flag("db-prepared-statements", default=True),
        channel=read.text("db-channel") or "pgrst",
        channel_enabled=read.flag("db-channel-enabled", default=True),
        database_configuration=read.flag("db-config", default=True),
        pre_config=read.text("db-pre-config"),
        jwt_secret=read.text("jwt-secret"),
        jwt_secret_is_base64=read.flag("jwt-secret-is-base64", default=False),
        jwt_audience=read.text("jwt-aud"),
        jwt_role_claim_key=read.text("jwt-role-claim-key") or "$.role",
        jwt_cache_max_entries=read.number("jwt-cache-max-entries", 1000) or 0,
        openapi_mode=read.choice("openapi-mode", OPENAPI_MODES),
        openapi_security_active=read.flag("openapi-security-active", default=False),
        openapi_server_proxy_uri=read.url("openapi-server-proxy-uri"),
        minimal_errors=read.choice("client-error-verbosity", ("verbose", "minimal")) == "minimal",
        legacy_target_names=read.flag("url-use-legacy-target-names", default=True),
        cors_allowed_origins=origins or None,
        server_timing=read.flag("server-timing-enabled", default=False),
        trace_header=read.text("server-trace-header"),
        app_settings=tuple(
            (name, text) for name, text in sorted(texts.items()) if name.lower().startswith(APP_SETTINGS)
        ),
        admin_host=url_host(read.text("admin-server-host") or "127.0.0.1"),
        admin_port=read.number("admin-server-port"),
        admin_socket=read.text("admin-server-unix-socket"),
        texts=tuple(texts.items()),
    )


def url_host(host: str) -> str:
    """Return a host as URLs have it: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def changed_options(options: PostgRestOptions, texts: Mapping[str, str]) -> PostgRestOptions:
    """Return the options with other texts for some keys. Raises `InvalidOptionError`."""
    return options_of({**dict(options.texts), **texts}) if texts else options


class _Reader:
    """Typed reads of texts by key."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, key: str) -> str | None:
        """Return a text; None if it is absent or empty."""
        return self._texts.get(key) or None

    def names(self, key: str, default: tuple[str, ...], *, empty: bool = False) -> tuple[str, ...]:
        """Return the parts between commas, without empty ones; the default if the text is absent. empty: the result may
        be empty; otherwise a blank text gives the default, and a text of commas alone raises `InvalidOptionError`."""
        text = self._texts.get(key)
        if text is None or (not text.strip() and not empty):
            return default
        names = tuple(part for part in (part.strip() for part in text.split(",")) if part)
        if not names and not empty:
            raise InvalidOptionError(f"{key}: {text!r} has no name")
        return names

    def number(self, key: str, default: int | None = None) -> int | None:
        """Return a whole number of at most nine digits; the default if the text is absent or empty. Raises
        `InvalidOptionError`."""
        text = (self._texts.get(key) or "").strip()
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise InvalidOptionError(f"{key}: {text!r} is not a whole number")
        return int(text)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a boolean; the default if the text is absent or empty. Raises `InvalidOptionError`."""
        text = (self._texts.get(key) or "").strip().lower()
        if not text:
            return default
        if text in ("true", "yes", "on", "1"):
            return True
        if text in ("false", "no", "off", "0"):
            return False
        raise InvalidOptionError(f"{key}: {text!r} is not a boolean")

    def url(self, key: str) -> str | None:
        """Return an http or https URL; None if it is absent or empty. Raises `InvalidOptionError`."""
        text = self.text(key)
        try:
            parts = urlsplit(text or "")
            # Reading the port raises ValueError for one that is no number.
            valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
        except ValueError:
            valid = False
        if text is not None and not valid:
            raise InvalidOptionError(f"{key}: {text!r} is no URL such as https://example.com:8443/base")
        return text

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Return one of `choices`; the first one is the default. Raises `InvalidOptionError` for another text."""
        text = self._texts.get(key) or ""
        if text and text not in choices:
            raise InvalidOptionError(f"{key}: {text!r} is not one of {', '.join(choices)}")
        return text or choices[0]
