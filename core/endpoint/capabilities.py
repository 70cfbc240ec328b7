"""What a comment can ask of each capability: one frozen record for each, in which nothing is asked for by default.

Plain data: annotations fill it, the capability reads it. `core.endpoint.endpoint.Options` holds one of each, None
where a comment does not speak of the capability.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rowcall.core.data.record import Record


@dataclass(frozen=True, slots=True)
class Stale(Record):
    """`cache_stale`: for how many seconds an answer is still of use when its lifetime is over (RFC 5861)."""

    revalidate: float = 0.0
    """It is given while one request makes a new one."""
    error: float = 0.0
    """It is given when a new one cannot be made."""

    @property
    def longest(self) -> float:
        return max(self.revalidate, self.error)


@dataclass(frozen=True, slots=True)
class Caching(Record):
    """`cached`, `cache_expires`, `cache_profile`, `cache_stale` (caching-4 to caching-7)."""

    enabled: bool = False
    """`cached` was written. A profile implies caching too."""
    parameters: tuple[str, ...] | None = None
    """Database names that make the key. None: not said; the profile's, or all."""
    expires: float | None = None
    """Seconds. None: not said."""
    profile: str | None = None
    tags: tuple[str, ...] = ()
    """By which answers are forgotten together; may hold `{parameter}`."""
    stale: Stale | None = None

    @property
    def wanted(self) -> bool:
        return self.enabled or self.profile is not None


@dataclass(frozen=True, slots=True)
class BasicAuth(Record):
    """`basic_auth`, `basic_auth_realm`, `basic_auth_command` (access-6)."""

    enabled: bool = False
    users: tuple[tuple[str, str], ...] = ()
    """Name and password, or its hash."""
    realm: str | None = None
    command: str | None = None
    """SQL that decides: $1 user, $2 password, $3 whether the password fits, $4 realm, $5 path."""


@dataclass(frozen=True, slots=True)
class Encryption(Record):
    """`encrypt`, `decrypt` (protection-8, protection-10)."""

    all_parameters: bool = False
    parameters: tuple[str, ...] = ()
    """Database names."""
    all_columns: bool = False
    columns: tuple[str, ...] = ()
    """As written: a database name or a name in responses, in any case."""
    parameter_bindings: tuple[tuple[str, str], ...] = ()
    """`encrypt _iban as NAME`: database name → what the values are bound to. The key "" stands for all the others."""
    column_bindings: tuple[tuple[str, str], ...] = ()
    """`decrypt iban as NAME`, by case-folded names of columns."""


@dataclass(frozen=True, slots=True)
class Forwarding(Record):
    """`proxy` or `proxy_out` (proxies-3)."""

    method: str | None = None
    """None: that of the request."""
    url: str | None = None
    """Absolute, or a path of this service. None: `ProxyOptions:Host`."""


@dataclass(frozen=True, slots=True)
class Reading(Record):
    """`read_from`."""

    replica: bool
    """False: the primary, whatever the configuration says."""
    lag: float | None = None
    """Seconds that a replica may be behind; None: as the configuration says."""


@dataclass(frozen=True, slots=True)
class Upload(Record):
    """`upload` and the settings of its handlers (uploads-3 to uploads-6)."""

    enabled: bool = False
    handlers: tuple[str, ...] = ()
    """Empty: the default handler."""
    metadata: str | None = None
    """Database name of the parameter that receives the metadata."""
    settings: tuple[tuple[str, str], ...] = ()
    """Word → text, in comment order: `row_command`, or with a handler in front `csv_row_command`. Texts may hold
    `{placeholders}`; one without is known to fit."""
    resumable: bool = False
    """Files may also come in pieces, over several requests."""
    progress: bool = False
    """How much has arrived is published, as the endpoint's notices are."""

    def setting(self, handler: str, name: str) -> str | None:
        """Value for one handler. The word without a handler in front wins (uploads-4)."""
        settings = dict(self.settings)
        return settings.get(name, settings.get(f"{handler}_{name}"))


class Impersonation(enum.Enum):
    """What an endpoint has to do with callers who act as another user."""

    BEGINS = "impersonate"
    ENDS = "end_impersonation"
    REFUSED = "refuse_impersonation"


class NoticeLevel(enum.Enum):
    """Severity of the notices that become events."""

    INFO = "INFO"
    NOTICE = "NOTICE"
    WARNING = "WARNING"


class Audience(enum.Enum):
    """`sse_scope`: who receives events."""

    ALL = "all"
    MATCHING = "matching"
    AUTHORIZE = "authorize"


@dataclass(frozen=True, slots=True)
class Events(Record):
    """Server-sent events (events-1 to events-3)."""

    publish: bool = False
    subscribe: bool = False
    path: str | None = None
    """Of the subscription, to be put behind the endpoint's path. None: the name of the level."""
    level: NoticeLevel | None = None
    """None: the default of the configuration."""
    scope: Audience = Audience.ALL
    names: tuple[str, ...] = ()
    """With AUTHORIZE: values as of the annotation `authorize`."""
    after_commit: bool | None = None
    """Published when their transaction has committed. None: the default of the configuration."""
    last_value: bool = False
    """Of the stream: begins with the latest event that there is for its reader."""
    channel: str | None = None
    """Of PostgreSQL, whose notifications are the stream."""
    filters: tuple[tuple[str, str], ...] = ()
    """With a channel: member of the payload and claim that has to have its value."""


@dataclass(frozen=True, slots=True)
class ClientCode(Record):
    """What generated client code does with an endpoint (clients-4). None: not said."""

    enabled: bool | None = None
    module: str | None = None
    events: bool | None = None
    parse_url: bool | None = None
    parse_request: bool | None = None
    status_code: bool | None = None
    export_url: bool | None = None
    url_only: bool | None = None
    hooks: bool | None = None


@dataclass(frozen=True, slots=True)
class Tool(Record):
    """`mcp`: the endpoint as a tool of language models (mcp-1, mcp-2)."""

    enabled: bool = False
    name: str | None = None
    text: str | None = None
    """Text behind `mcp`."""
    description: str | None = None
    """Text behind `mcp_description`; wins over `text`."""


@dataclass(frozen=True, slots=True)
class Document(Record):
    """`openapi`: the endpoint in the OpenAPI document (documents-5)."""

    hidden: bool = False
    tags: tuple[str, ...] = ()
    """Empty: the schema's name."""
    examples: tuple[tuple[str, str], ...] = ()
    """Values to show: name of a parameter in lower case, and the text."""
