"""The table of all configuration keys in documented order, from which loading, reads, validation and the manual derive.

A new capability adds a module of rows and lists it here; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.accounts.lockout import LockoutOptions
from rowcall.core.accounts.options import MailOptions
from rowcall.core.accounts.password_rules import PasswordRules
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.batch.options import BatchOptions
from rowcall.core.cache.options import CacheOptions
from rowcall.core.config.rows import (
    antiforgery,
    application,
    auth,
    auth_external,
    auth_passkeys,
    authentication_options,
    client_code,
    connections,
    crud,
    dart_client_code,
    data_protection,
    errors,
    health_checks,
    http_files,
    http_server,
    log,
    mcp,
    metrics,
    migrations,
    openapi,
    postgrest,
    python_client_code,
    rate_limiter,
    replicas,
    security_headers,
    service,
    sql_files,
    ssl,
    static_files,
    stats,
    test_runner,
    thread_pool,
    uploads,
    validation,
    watch,
)
from rowcall.core.documents.reference_page import ReferencePage
from rowcall.core.downloads.options import DownloadOptions
from rowcall.core.events.options import EventOptions
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import TableFormatOptions
from rowcall.core.http.compression import ResponseCompression
from rowcall.core.http.cors import Cors
from rowcall.core.http.deadlines import DeadlineOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.jobs.options import JobOptions
from rowcall.core.operations.audit_trail import AuditTrailOptions
from rowcall.core.operations.console import ConsoleOptions
from rowcall.core.operations.tracing import TracingOptions
from rowcall.core.outgoing.options import ClientOptions, ProxyOptions, TypeOptions
from rowcall.core.postgrest.configuration.keys import INTERFACE_KEYS
from rowcall.core.sections.declaration import keys_of
from rowcall.core.sections.keys import Key, KeyType
from rowcall.core.webhooks.options import DeliveryOptions

KEYS: tuple[Key, ...] = (
    *application.ROWS,
    *connections.ROWS,
    *replicas.ROWS,
    *ssl.ROWS,
    *data_protection.ROWS,
    *http_server.ROWS,
    *thread_pool.ROWS,
    *auth.ROWS,
    *auth_external.ROWS,
    *keys_of(LockoutOptions),
    *auth_passkeys.ROWS,
    *keys_of(PasswordRules),
    *keys_of(SecondFactorOptions),
    *log.ROWS,
    *keys_of(ResponseCompression),
    *antiforgery.ROWS,
    *static_files.ROWS,
    *keys_of(Cors),
    *security_headers.ROWS,
    *keys_of(Forwarding),
    *health_checks.ROWS,
    *stats.ROWS,
    *metrics.ROWS,
    *keys_of(ConsoleOptions),
    *keys_of(TracingOptions),
    *test_runner.ROWS,
    *watch.ROWS,
    *keys_of(CacheOptions),
    *validation.ROWS,
    *rate_limiter.ROWS,
    *errors.ROWS,
    *service.ROWS,
    *keys_of(BatchOptions),
    *keys_of(JobOptions),
    *keys_of(DeliveryOptions),
    *keys_of(MailOptions),
    *migrations.ROWS,
    *keys_of(DeadlineOptions),
    *keys_of(EventOptions),
    *uploads.ROWS,
    *keys_of(DownloadOptions),
    *keys_of(TableFormatOptions),
    *keys_of(ExportOptions),
    *authentication_options.ROWS,
    *keys_of(AuditTrailOptions),
    *keys_of(ReferencePage),
    *http_files.ROWS,
    *openapi.ROWS,
    *mcp.ROWS,
    *client_code.ROWS,
    *dart_client_code.ROWS,
    *python_client_code.ROWS,
    *keys_of(TypeOptions),
    *keys_of(ClientOptions),
    *keys_of(ProxyOptions),
    *crud.ROWS,
    *sql_files.ROWS,
    *postgrest.ROWS,
)

SECTIONS: tuple[type, ...] = (
    LockoutOptions,
    PasswordRules,
    SecondFactorOptions,
    ResponseCompression,
    Cors,
    Forwarding,
    ConsoleOptions,
    TracingOptions,
    CacheOptions,
    BatchOptions,
    JobOptions,
    DeliveryOptions,
    MailOptions,
    DeadlineOptions,
    EventOptions,
    DownloadOptions,
    TableFormatOptions,
    ExportOptions,
    AuditTrailOptions,
    ReferencePage,
    TypeOptions,
    ClientOptions,
    ProxyOptions,
)
"""Classes that declare sections."""

ALIASES: Mapping[str, str] = {"kestrel": "HttpServer", "npgsqlrest": "Service"}
"""Alternative names of top-level sections (case-folded) and their canonical names."""

FORMER_KEYS: Mapping[str, str] = {
    "HttpServer:Shutdown:GoodbyeTime": "HttpServer:Shutdown:ConnectionCloseTime",
    "Service:ServerSentEvents:SlowReaderPatience": "Service:ServerSentEvents:SlowReaderTimeout",
}
"""Former names of keys and their present names in the same section. Former names are accepted with a warning."""

SECOND_NAMES: Mapping[str, str] = {
    f"PostgRest:{name}": f"PostgRest:{key.name}" for key in INTERFACE_KEYS for name in (key.postgrest, *key.aliases)
}
"""Second names of keys, which are accepted without a warning."""


_WILD = "<>"
_OPEN = {KeyType.TEXTS, KeyType.NUMBERS, KeyType.OBJECTS, KeyType.STEPS, KeyType.NAMES, KeyType.ANY}


@dataclass(slots=True)
class KeyNode:
    """A key tree node: a declared name, its row, and the declared names below it."""

    name: str
    key: Key | None = None
    key_nodes: dict[str, KeyNode] = field(default_factory=dict)

    def below(self, name: str) -> KeyNode | None:
        """Return the node of `name`, or the wildcard node for user-defined names and array elements, or None."""
        return self.key_nodes.get(name.casefold()) or self.key_nodes.get(_WILD)

    @property
    def is_wild(self) -> bool:
        """Whether the node is `<name>` or `[]`, which matches any name."""
        return _folded(self.name) == _WILD

    @property
    def open(self) -> bool:
        """Whether names below are not checked: they are user-defined, or elements of an array."""
        return self.key is not None and (self.key.open or self.key.type in _OPEN)


def _folded(name: str) -> str:
    return _WILD if name == "[]" or name.startswith("<") else name.casefold()


def build_key_tree(keys: Iterable[Key]) -> KeyNode:
    """Build the tree of rows by the names in their paths."""
    root = KeyNode("")
    for key in keys:
        node_of_key = root
        for name in key.path.split(":"):
            node_of_key = node_of_key.key_nodes.setdefault(_folded(name), KeyNode(name))
        node_of_key.key = key
    return root


KEY_TREE = build_key_tree(KEYS)


def key_at(path: str) -> Key:
    """Return the row of `path`, which may contain user-defined names: `CacheOptions:Profiles:slow:Expiration`.

    Raises KeyError for an undeclared key, which is a programming error: each key that is read is declared.
    """
    node_of_key: KeyNode | None = KEY_TREE
    for name in path.split(":"):
        node_of_key = None if node_of_key is None else node_of_key.below(name)
    if node_of_key is None or node_of_key.key is None:
        raise KeyError(path)
    return node_of_key.key


def is_named_by_user(path: str) -> bool:
    """Return whether the last name is user-defined: `Auth:External:github`, but not `Auth:External:RedirectUrl`."""
    node_of_key: KeyNode | None = KEY_TREE
    for name in path.split(":"):
        node_of_key = None if node_of_key is None else node_of_key.below(name)
    return node_of_key is not None and node_of_key.is_wild


def canonical(path: str) -> str:
    """Return `path` with the canonical name of its top-level section: `HttpServer:Limits` for `Kestrel:Limits`."""
    top, colon, rest = path.partition(":")
    return f"{ALIASES.get(top.casefold(), top)}{colon}{rest}"


def is_secret(path: str) -> bool:
    """Return whether a value at `path` must not be shown."""
    node_of_key: KeyNode | None = KEY_TREE
    for name in canonical(path).split(":"):
        node_of_key = None if node_of_key is None else node_of_key.below(name)
        if node_of_key is not None and node_of_key.key is not None and node_of_key.key.secret:
            return True
    return False


_SINGLE = {KeyType.TEXT, KeyType.BOOL, KeyType.INT, KeyType.CHOICE, KeyType.INTERVAL, KeyType.ANY}


def knows(path: str) -> bool:
    """Return whether a single value at `path` is read: as a key, an array element or an entry of an open map."""
    node_of_key = KEY_TREE
    for name in path.split(":"):
        if node_of_key.open:
            return True
        below = node_of_key.below(name)
        if below is None:
            return False
        node_of_key = below
    return node_of_key.key is not None and node_of_key.key.type in _SINGLE
