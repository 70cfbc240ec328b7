"""The table of all configuration keys in documented order, from which loading, reads, validation and the manual derive.

A new section is a class with the decorator `section`, which is listed here; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.accounts.lockout import LockoutOptions
from rowcall.core.accounts.options import MailOptions
from rowcall.core.accounts.password_rules import PasswordRules
from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.external.options import ExternalOptions
from rowcall.core.auth.options import LoginOptions, SecondFactorOptions
from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.batch.options import BatchOptions
from rowcall.core.building.service import ServiceOptions
from rowcall.core.cache.options import CacheOptions
from rowcall.core.codegen.options import ClientCodeOptions, DartOptions, PythonOptions
from rowcall.core.config.sections.application import Application, Loading
from rowcall.core.config.sections.auth import Authentication
from rowcall.core.config.sections.connections import ConnectionSettings, ConnectionStrings
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.core.config.sections.errors import CommandRetryOptions, ErrorHandlingOptions
from rowcall.core.config.sections.http_server import HttpServer
from rowcall.core.config.sections.limits import RateLimiter
from rowcall.core.config.sections.log import Log
from rowcall.core.config.sections.migrations import Migrations
from rowcall.core.config.sections.postgrest import PostgRest
from rowcall.core.config.sections.security_headers import SecurityHeaders
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.config.sections.ssl import Ssl
from rowcall.core.config.sections.tables import CrudSource
from rowcall.core.config.sections.thread_pool import ThreadPool
from rowcall.core.config.sections.validation import ValidationOptions
from rowcall.core.config.sections.watch import WatchOptions
from rowcall.core.documents.options import HttpFileOptions, OpenApiOptions, ReferencePage
from rowcall.core.downloads.options import DownloadOptions
from rowcall.core.events.options import EventOptions
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import TableFormatOptions
from rowcall.core.http.compression import ResponseCompression
from rowcall.core.http.cors import Cors
from rowcall.core.http.deadlines import DeadlineOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.jobs.options import JobOptions
from rowcall.core.mcp.options import McpOptions
from rowcall.core.operations.audit_trail import AuditTrailOptions
from rowcall.core.operations.console import ConsoleOptions
from rowcall.core.operations.metrics import Admin, MetricsOptions, ProfilingOptions
from rowcall.core.operations.options import HealthOptions, StatisticsKeys
from rowcall.core.operations.static_files import StaticFileOptions
from rowcall.core.operations.tracing import TracingOptions
from rowcall.core.outgoing.options import ClientOptions, ProxyOptions, TypeOptions
from rowcall.core.postgrest.configuration.keys import INTERFACE_KEYS
from rowcall.core.sections.declaration import keys_of
from rowcall.core.sections.keys import Key, KeyType
from rowcall.core.testing.options import TestOptions
from rowcall.core.uploads.options import UploadOptions
from rowcall.core.webhooks.options import DeliveryOptions

SECTIONS: tuple[type, ...] = (
    Application,
    Loading,
    ConnectionStrings,
    ConnectionSettings,
    Ssl,
    DataProtection,
    HttpServer,
    ThreadPool,
    Authentication,
    ExternalOptions,
    LockoutOptions,
    PasskeyOptions,
    PasswordRules,
    SecondFactorOptions,
    Log,
    ResponseCompression,
    AntiforgeryOptions,
    StaticFileOptions,
    Cors,
    SecurityHeaders,
    Forwarding,
    HealthOptions,
    StatisticsKeys,
    Admin,
    MetricsOptions,
    ProfilingOptions,
    ConsoleOptions,
    TracingOptions,
    TestOptions,
    WatchOptions,
    CacheOptions,
    ValidationOptions,
    RateLimiter,
    CommandRetryOptions,
    ErrorHandlingOptions,
    ServiceOptions,
    BatchOptions,
    JobOptions,
    DeliveryOptions,
    MailOptions,
    Migrations,
    DeadlineOptions,
    EventOptions,
    UploadOptions,
    DownloadOptions,
    TableFormatOptions,
    ExportOptions,
    LoginOptions,
    AuditTrailOptions,
    ReferencePage,
    HttpFileOptions,
    OpenApiOptions,
    McpOptions,
    ClientCodeOptions,
    DartOptions,
    PythonOptions,
    TypeOptions,
    ClientOptions,
    ProxyOptions,
    CrudSource,
    SqlFileOptions,
    PostgRest,
)
"""The classes of all sections, in documented order; classes of their parts and elements are in them."""

KEYS: tuple[Key, ...] = tuple(key for kind in SECTIONS for key in keys_of(kind))

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
_FLAT = {KeyType.TEXTS, KeyType.NUMBERS, KeyType.NAMES, KeyType.TEXT_MAP}
"""Lists and maps whose entries are single values."""


@dataclass(slots=True)
class KeyNode:
    """A key tree node: a declared name, its key, and the declared names below it. key: None: no key has this path.
    key_nodes: nodes by case-folded name; that of `<name>` or `[]` by `<>`."""

    name: str
    key: Key | None = None
    key_nodes: dict[str, KeyNode] = field(default_factory=dict)

    def child(self, name: str) -> KeyNode | None:
        """Return the node of `name` below this one, or the wildcard node, which stands for user-defined names and array
        elements.

        None: no such name is declared.
        """
        return self.key_nodes.get(name.casefold()) or self.key_nodes.get(_WILD)

    @property
    def is_wild(self) -> bool:
        """Whether the node is `<name>` or `[]`, which matches any name."""
        return _lookup_name(self.name) == _WILD

    @property
    def is_open(self) -> bool:
        """Whether names below are not checked, because they are user-defined or elements of an array."""
        return self.key is not None and (self.key.open or self.key.type in _OPEN)


def _lookup_name(name: str) -> str:
    return _WILD if name == "[]" or name.startswith("<") else name.casefold()


def build_key_tree(keys: Iterable[Key]) -> KeyNode:
    """Return the root of a tree of the keys by the names in their paths."""
    root = KeyNode("")
    for key in keys:
        node_of_key = root
        for name in key.path.split(":"):
            node_of_key = node_of_key.key_nodes.setdefault(_lookup_name(name), KeyNode(name))
        node_of_key.key = key
    return root


KEY_TREE = build_key_tree(KEYS)


def key_at(path: str) -> Key:
    """Return the key of `path`, which may contain user-defined names: `CacheOptions:Profiles:slow:Expiration`.

    Raises KeyError for an undeclared key, which is a programming error: each key that is read is declared.
    """
    node_of_key: KeyNode | None = KEY_TREE
    for name in path.split(":"):
        node_of_key = None if node_of_key is None else node_of_key.child(name)
    if node_of_key is None or node_of_key.key is None:
        raise KeyError(path)
    return node_of_key.key


def is_named_by_user(path: str) -> bool:
    """Return whether the last name is user-defined or an index of a list of sections: `Auth:External:github`, but not
    `Auth:External:RedirectUrl`. An undeclared path is not."""
    node_of_key: KeyNode | None = KEY_TREE
    for name in path.split(":"):
        node_of_key = None if node_of_key is None else node_of_key.child(name)
    return node_of_key is not None and node_of_key.is_wild


def canonical(path: str) -> str:
    """Return `path` with the canonical name of its top-level section: `HttpServer:Limits` for `Kestrel:Limits`."""
    top, colon, rest = path.partition(":")
    return f"{ALIASES.get(top.casefold(), top)}{colon}{rest}"


def is_secret(path: str) -> bool:
    """Return whether a value at `path` must not be shown, because its key or one above it is secret."""
    node_of_key: KeyNode | None = KEY_TREE
    for name in canonical(path).split(":"):
        node_of_key = None if node_of_key is None else node_of_key.child(name)
        if node_of_key is not None and node_of_key.key is not None and node_of_key.key.secret:
            return True
    return False


_SINGLE = {KeyType.TEXT, KeyType.BOOL, KeyType.INT, KeyType.CHOICE, KeyType.INTERVAL, KeyType.ANY}


def knows(path: str) -> bool:
    """Return whether a single value at `path` is read: as a key, an array element or an entry of an open map. No value
    below an entry of a list or map of texts is: `ConnectionStrings:Default:Password` names no part of the text."""
    node_of_key = KEY_TREE
    names = path.split(":")
    for position, name in enumerate(names, 1):
        if node_of_key.is_open and node_of_key.key is not None:
            return node_of_key.key.type not in _FLAT or position == len(names)
        below = node_of_key.child(name)
        if below is None:
            return False
        node_of_key = below
    return node_of_key.key is not None and node_of_key.key.type in _SINGLE
