"""Options of each capability that a comment can set: one frozen record for each capability. Its defaults mean "off".

Annotations fill the records, and the capabilities read them. `core.endpoint.endpoint.Options` holds one record of each
kind, or None if the comment does not use the capability.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rowcall.core.data.record import Record
from rowcall.core.text.ascii_case import ascii_lower


class CommentsMode(enum.Enum):
    """Which objects become endpoints (discovery-15)."""

    ONLY_ANNOTATED = "OnlyAnnotated"
    PARSE_ALL = "ParseAll"
    IGNORE = "Ignore"


def comments_mode_of(word: str) -> CommentsMode:
    """Return the mode of a word of the configuration, in which `OnlyWithHttpTag` is a second name. Raises ValueError
    for a word that is no mode."""
    return CommentsMode("OnlyAnnotated" if word == "OnlyWithHttpTag" else word)


@dataclass(frozen=True, slots=True)
class Stale(Record):
    """`cache_stale`: seconds for which a cached response is used after its lifetime (RFC 5861)."""

    revalidate: float = 0.0
    """Seconds for which the old response is sent while one request computes a new one."""
    error: float = 0.0
    """Seconds for which the old response is sent if a new one cannot be computed."""

    @property
    def longest(self) -> float:
        """The longer of `revalidate` and `error`, in seconds."""
        return max(self.revalidate, self.error)


@dataclass(frozen=True, slots=True)
class Caching(Record):
    """`cached`, `cache_expires`, `cache_profile`, `cache_stale` (caching-4 to caching-7)."""

    enabled: bool = False
    """The comment has `cached`. A profile enables caching too."""
    parameters: tuple[str, ...] | None = None
    """Database names of the parameters in the key. None: those of the profile, or all."""
    expires: float | None = None
    """Lifetime in seconds. None: not set by the comment."""
    profile: str | None = None
    tags: tuple[str, ...] = ()
    """Tags for common invalidation; may contain `{parameter}`."""
    stale: Stale | None = None

    @property
    def requested(self) -> bool:
        """Whether the comment asks for caching."""
        return self.enabled or self.profile is not None


@dataclass(frozen=True, slots=True)
class Queryable(Record):
    """`queryable`, `max_rows`: what requests may do with the columns of the result."""

    select: bool = False
    filter: bool = False
    order: bool = False
    page: bool = False
    rows: int | None = None
    """Rows of a page if a request sets no `limit`. None: as many as a page may have."""
    most: int | None = None
    """Most rows of a page. None: that of the configuration."""
    unique: tuple[str, ...] = ()
    """Columns that identify a row, as written. Empty: the primary key of a table."""

    @property
    def enabled(self) -> bool:
        return self.select or self.filter or self.order or self.page


class FileSource(enum.Enum):
    """The column of a download that has the file, or that says where the file is."""

    CONTENT = "content"
    FILE = "file"
    LARGE_OBJECT = "oid"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Download(Record):
    """`download`: the row of the routine is a file."""

    inline: bool = False
    """Browsers show it instead of saving it."""
    source: FileSource | None = None
    """The column with the file. None: not known yet."""
    link_seconds: float | None = None
    """Lifetime of links with which any client gets the file. None: there are no links."""


@dataclass(frozen=True, slots=True)
class IssuedToken(Record):
    """`issue_token`: each row of the result gets a one-time token. seconds: lifetime of the token."""

    purpose: str
    seconds: float
    subject: str
    """Column of the result whose value is the subject of the token."""
    most: int | None = None
    """Most tokens for a subject within `period` seconds; None: no limit."""
    period: float = 3600.0


@dataclass(frozen=True, slots=True)
class ConsumedToken(Record):
    """`consume_token`: a request needs a one-time token, and uses it up. parameter: the one with the token."""

    purpose: str
    parameter: str


@dataclass(frozen=True, slots=True)
class Mail:
    """`send_mail`: each row of the result is a mail. Not a `Record`, which needs two fields."""

    template: str | None = None


@dataclass(frozen=True, slots=True)
class Job(Record):
    """`job`: requests only enqueue the call of the routine, which a worker runs later."""

    queue: str = "default"
    retries: int = 3
    backoff: float = 5.0
    """Seconds before the second attempt; doubled for each further one."""
    unique_by: tuple[str, ...] | None = None
    """Parameters; of jobs with the same values of these, only one may be unfinished. Empty: all parameters count. None:
    there may be any number of equal jobs."""
    serial_by: tuple[str, ...] = ()
    """Parameters; of jobs of the endpoint with the same values of these, at most `serial_limit` run at a time."""
    serial_limit: int = 1
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Schedule(Record):
    """`schedule`: the times at which a job calls the routine."""

    expression: str
    """Five fields of cron, or a name such as `@daily`."""
    time_zone: str = "UTC"
    missed: bool = False
    """If times were missed while no service ran, one job is enqueued for the last of them."""
    overlap: bool = False
    """A job may be enqueued although the previous one has not ended."""


class ValuePlace(enum.Enum):
    """Part of a request from which a tenant or a time zone is read."""

    CLAIM = "claim"
    HEADER = "header"
    HOST = "host"
    PREFER = "prefer"


class HostReader(Protocol):
    """Options of forwarded headers, which trusted proxies write."""

    @property
    def enabled(self) -> bool:
        """Whether forwarded headers are used."""

    def host_of(self, values: Callable[[str], Sequence[str]], peer: str, scheme: str) -> str | None:
        """Return the forwarded host of a request; None: the host of the request is valid. Arguments: as for
        `core.http.forwarded_headers.client_of`."""


@dataclass(frozen=True, slots=True)
class Tenant(Record):
    """`tenant`: the tenant of a request, and the setting that a routine sees, or the database where it runs."""

    place: ValuePlace
    name: str
    """Type of a claim, name of a header, or pattern of a host name with one `*`."""
    setting: str = "request.tenant"
    """Setting of PostgreSQL that receives the name of the tenant, or the search path."""
    schemas: tuple[str, ...] = ()
    """Search path with `{0}` for the name of the tenant. Empty: `setting` receives the name itself."""
    connection: str = ""
    """Name of the connection with `{0}` for the tenant. Empty: the request runs on that of its endpoint."""
    forwarding: HostReader | None = None
    """Reads the host name from forwarded headers; None: it is only that of the request itself."""

    def with_forwarding(self, forwarding: HostReader | None) -> Tenant:
        """Return a copy that reads a host name also from forwarded headers, if these are used; the tenant itself if it
        is not part of a host name."""
        if self.place is not ValuePlace.HOST or forwarding is None or not forwarding.enabled:
            return self
        return replace(self, forwarding=forwarding)

    def connections(self, names: Iterable[str]) -> dict[str, str]:
        """Return tenant → name of its connection, for those of `names` that fit the pattern `connection`.

        The tenant is spelled as a request has to spell it: in lower case if `place` is `HOST`, otherwise exactly as in
        the name of the connection. The text around it in the name may have any case.
        """
        begin, _, end = ascii_lower(self.connection).partition("{0}")
        found: dict[str, str] = {}
        for name in names:
            lowered = ascii_lower(name)
            size = len(name) - len(begin) - len(end)
            if self.connection and size > 0 and lowered.startswith(begin) and lowered.endswith(end):
                spelled = lowered if self.place is ValuePlace.HOST else name
                found[spelled[len(begin) : len(begin) + size]] = name
        return found


@dataclass(frozen=True, slots=True)
class TimeZone(Record):
    """`timezone_from`: the time zone in which a routine runs, and in which its timestamps are rendered."""

    place: ValuePlace
    name: str = ""


@dataclass(frozen=True, slots=True)
class Idempotency(Record):
    """`idempotent`: requests with an `Idempotency-Key` take effect once."""

    required: bool = False
    """Requests without a key are refused."""
    seconds: float | None = None
    """Seconds for which a result is stored. None: as many as the configuration sets."""


class WebhookScheme(enum.Enum):
    """How a sender signs its webhooks."""

    STANDARD = "standard"
    STRIPE = "stripe"
    GITHUB = "github"
    SLACK = "slack"
    SHOPIFY = "shopify"


@dataclass(frozen=True, slots=True)
class Webhook(Record):
    """`verify_webhook`: requests are webhooks with a signature."""

    scheme: WebhookScheme
    secret: str
    """Name of the secret in `Webhooks:Secrets`."""
    tolerance: float = 300.0
    """Age in seconds from which a signature is refused."""


@dataclass(frozen=True, slots=True)
class Publishing(Record):
    """`publishes`: the result is published as a message."""

    topic: str
    key: str | None = None
    """Name of the column or member that is the key of the message."""


@dataclass(frozen=True, slots=True)
class BasicAuth(Record):
    """`basic_auth`, `basic_auth_realm`, `basic_auth_command` (access-6)."""

    enabled: bool = False
    users: tuple[tuple[str, str], ...] = ()
    """Name and password, or hash of the password."""
    realm: str | None = None
    command: str | None = None
    """SQL that checks the credentials: $1 user, $2 password, $3 whether the password matches, $4 realm, $5 path."""


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
    """`encrypt _iban as NAME`: database name → context to which its values are bound. The key "" stands for all other
    names."""
    column_bindings: tuple[tuple[str, str], ...] = ()
    """`decrypt iban as NAME`, by case-folded names of columns."""


@dataclass(frozen=True, slots=True)
class Forwarding(Record):
    """`proxy` or `proxy_out` (proxies-3)."""

    method: str | None = None
    """HTTP method of the outgoing request. None: that of the request."""
    url: str | None = None
    """Absolute URL, or a path of this service. None: `ProxyOptions:Host`."""


@dataclass(frozen=True, slots=True)
class Reading(Record):
    """`read_from`: whether the endpoint runs on a replica or on the primary."""

    replica: bool
    """False: from the primary, regardless of the configuration."""
    lag: float | None = None
    """Longest delay of a replica in seconds; None: that of the configuration."""


@dataclass(frozen=True, slots=True)
class Upload(Record):
    """`upload` and the settings of its handlers (uploads-3 to uploads-6)."""

    enabled: bool = False
    handlers: tuple[str, ...] = ()
    """Names of the handlers. Empty: the default handler."""
    metadata: str | None = None
    """Database name of the parameter that receives the metadata."""
    settings: tuple[tuple[str, str], ...] = ()
    """Word → text, in comment order: `row_command`, or with a handler as prefix `csv_row_command`. Texts may contain
    `{placeholders}`; a text without them has been checked."""
    resumable: bool = False
    """Files may also be uploaded in chunks, over several requests."""
    progress: bool = False
    """Publish the number of received bytes in the event stream of the endpoint."""

    def setting(self, handler: str, name: str) -> str | None:
        """Return the text of a setting for a handler; None: not set. The word without prefix takes precedence
        (uploads-4)."""
        settings = dict(self.settings)
        return settings.get(name, settings.get(f"{handler}_{name}"))


class Impersonation(enum.Enum):
    """How an endpoint treats impersonation (callers who act as another user)."""

    BEGINS = "impersonate"
    ENDS = "end_impersonation"
    REFUSED = "refuse_impersonation"


class NoticeLevel(enum.Enum):
    """Severity of the notices that become events: exactly those of this level."""

    INFO = "INFO"
    NOTICE = "NOTICE"
    WARNING = "WARNING"


class Audience(enum.Enum):
    """`sse_scope`: the recipients of events."""

    ALL = "all"
    MATCHING = "matching"
    AUTHORIZE = "authorize"


@dataclass(frozen=True, slots=True)
class Events(Record):
    """Server-sent events (events-1 to events-3)."""

    publish: bool = False
    subscribe: bool = False
    path: str | None = None
    """Path segment of the stream, appended to the path of the endpoint. None: the name of the level."""
    level: NoticeLevel | None = None
    """None: the default of the configuration."""
    scope: Audience = Audience.ALL
    names: tuple[str, ...] = ()
    """With AUTHORIZE: values as in the annotation `authorize`."""
    after_commit: bool | None = None
    """Publish events only after their transaction has committed. None: the default of the configuration."""
    last_value: bool = False
    """The stream begins with the latest event that its reader may receive."""
    channel: str | None = None
    """Channel of PostgreSQL whose notifications are the stream."""
    filters: tuple[tuple[str, str], ...] = ()
    """For a stream with a channel: pairs of a member of the payload, and the claim of the reader that must have its
    value."""


@dataclass(frozen=True, slots=True)
class ClientCode(Record):
    """Settings of generated client code for an endpoint (clients-4). None: not set by the comment."""

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
    """Text after the annotation `mcp`."""
    description: str | None = None
    """Text after the annotation `mcp_description`; takes precedence over `text`."""


@dataclass(frozen=True, slots=True)
class Document(Record):
    """`openapi`: the endpoint in the OpenAPI document (documents-5)."""

    hidden: bool = False
    tags: tuple[str, ...] = ()
    """Tags of the operation. Empty: the name of the schema."""
    examples: tuple[tuple[str, str], ...] = ()
    """Example values: name of a parameter in lower case, and the text."""
