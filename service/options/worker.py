"""What a worker is told besides the edition: frozen options, made once by the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.cache.options import NO_CACHE, CacheOptions
from rowcall.core.documents.mcp import McpOptions
from rowcall.core.documents.openapi import OpenApi
from rowcall.core.documents.tool_schemas import ToolSchemaOptions
from rowcall.core.endpoint.before_routine import BeforeCommand, ValueSource
from rowcall.core.endpoint.validation import BUILT_IN, Rule
from rowcall.core.errors.error_policy import ErrorPolicies
from rowcall.core.errors.retry import RetryStrategies
from rowcall.core.formats.table_formats import TableFormats
from rowcall.core.http.compression import Compression
from rowcall.core.http.cors import Cors
from rowcall.core.http.deadlines import DeadlineOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.limits.policy import NO_LIMITS, LimitOptions
from rowcall.core.outgoing.options import OutboundOptions
from rowcall.core.uploads.options import UploadOptions
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.databases import Access
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.replicas.options import ReplicaOptions
from rowcall.service.log.notices import NoticeMode
from rowcall.service.options.application_name import JsonApplicationName
from rowcall.service.options.capabilities.audit_trail import AuditTrailOptions
from rowcall.service.options.capabilities.events import EventOptions
from rowcall.service.options.capabilities.operations import HealthOptions, StatisticsOptions
from rowcall.service.options.capabilities.static_files import StaticFileOptions
from rowcall.service.options.server.metrics import MetricsOptions
from rowcall.service.options.server.slow_requests import SlowRequestOptions
from rowcall.service.options.server.tracing import TracingOptions


@dataclass(frozen=True, slots=True)
class Http2Options:
    """HTTP/2. Times in seconds, sizes in bytes."""

    streams: int = 100
    frame: int = 16_384
    headers: int | None = None
    """All headers of a request together; None: as for HTTP/1.1."""
    connection_window: int = 1_048_576
    stream_window: int = 786_432
    ping_delay: float | None = None
    ping_timeout: float = 20.0


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Of the bodies of requests. Times in seconds, sizes in bytes."""

    budget: int = 33_554_432
    """Of large bodies that a worker holds at the same time."""
    rate: float = 240.0
    """In a second, on average, once `grace` has passed; 0: none is too slow."""
    grace: float = 5.0
    longest: float = 300.0
    """For a body to arrive as a whole; 0: as long as it takes."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The HTTP side of a worker. Times in seconds, sizes in bytes; a limit that is None is the server's own."""

    body_limit: int = 30_000_000
    sign_in_body_limit: int = 65_536
    form_body_limit: int = 2_097_152
    """Of urlencoded forms that the service decodes itself."""
    bodies: BodyLimits = BodyLimits()
    allowed_hosts: tuple[str, ...] = ()
    """Of requests. Empty: any."""
    header_timeout: float = 30.0
    """For the head of a request to arrive, and for a connection to stay idle."""
    keep_alive: bool = True
    line_limit: int | None = None
    headers_limit: int | None = None
    read_at_once: int = 0
    """Bytes of a connection of HTTP/1; in any case as many as a head may have."""
    header_count_limit: int | None = None
    connections: int | None = None
    """Open ones of each listener of this worker; more wait to be accepted."""
    response_buffer: int | None = None
    http2: Http2Options = Http2Options()
    threads: int = 1
    blocking_threads: int | None = None
    slow_client: float = 60.0
    """How long a client may leave a streamed response unread."""
    server_timing: bool = False
    server_header: bool = True
    redirect_to_https: bool = False
    https_port: int | None = None
    """Where to; None: that of the first https address."""
    hsts: bool = False
    compression: Compression | None = None
    """Of answers. None: they go out as they are."""
    security_headers: tuple[tuple[str, str], ...] = ()
    """Of every answer."""
    cors: Cors | None = None
    """None: nothing is told to pages of other origins."""

    @property
    def head_limit(self) -> int:
        """Bytes of the request line and all headers together."""
        return (self.line_limit or 8192) + (self.headers_limit or 32_768)

    @property
    def unguarded_head(self) -> bool:
        """The server reads more at once than a head may have, and so does not say that one is too large."""
        return self.read_at_once > self.head_limit


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """What routines see of the request's headers, in endpoints that ask for them.

    key: the setting that holds them. added: names as routines see them, and values that take the place of the client's.
    from_client: a request that supplies the parameter is believed.
    """

    key: str = "request.headers"
    added: tuple[tuple[str, str], ...] = ()
    from_client: bool = False


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Everything a worker needs besides the edition."""

    target: ConnectionTarget
    database: DatabaseOptions
    others: Mapping[str, Access] = field(default_factory=dict)
    """Databases besides the main one, by case-folded name of their connection."""
    replicas: ReplicaOptions | None = None
    """Of the main one."""
    main_names: frozenset[str] = frozenset()
    """Case-folded names by which endpoints may call the main one."""
    http: HttpOptions = HttpOptions()
    policies: ErrorPolicies = field(default_factory=ErrorPolicies)
    rules: Mapping[str, Rule] = field(default_factory=lambda: BUILT_IN)
    """What `validate` may name."""
    retries: RetryStrategies = field(default_factory=RetryStrategies)
    resolve_nested: bool = True
    timestamps_utc: bool = True
    strict_types: StrictTypes | None = None
    problem_types: bool = True
    explains_unauthorized: bool = False
    """A 401 says in its body what is wrong, and what would open the endpoint."""
    """Problem bodies carry `type`."""
    problem_traces: bool = False
    """Problem bodies carry `traceId`."""
    request_log: bool = False
    """Each request gives an entry of the log."""
    correlation_header: str | None = None
    notices: NoticeMode | None = NoticeMode.FIRST_STACK_FRAME
    """How notices are logged. None: not at all."""
    before: tuple[BeforeCommand, ...] = ()
    """What runs in front of every routine."""
    wrap_in_transaction: bool = False
    log_commands: bool = False
    log_command_parameters: bool = False
    log_file_texts: bool = False
    """Files with several statements are logged with their SQL."""
    camel_case: bool = True
    safe_numbers: bool = False
    """bigint and numeric are texts in JSON, and in everything that describes the service."""
    tables: TableFormats = field(default_factory=TableFormats)
    uploads: UploadOptions = field(default_factory=UploadOptions)
    hides_paths: bool = False
    """Who is not signed in gets 401 for what does not exist as well."""
    requires_authorization: bool = True
    """What holds for endpoints whose comment says nothing."""
    headers: RequestHeaders = RequestHeaders()
    auth: AuthOptions = field(default_factory=AuthOptions)
    antiforgery: AntiforgeryOptions | None = None
    passkeys: PasskeyOptions | None = None
    forwarding: Forwarding = field(default_factory=Forwarding)
    events: EventOptions = field(default_factory=EventOptions)
    cache: CacheOptions = NO_CACHE
    limits: LimitOptions = NO_LIMITS
    store: str = ""
    """Folder of the host's store, made by the supervisor."""
    health: HealthOptions | None = None
    tracing: TracingOptions | None = None
    """None: nothing is traced."""
    query_tags: bool = False
    slow_requests: SlowRequestOptions | None = None
    metrics: MetricsOptions | None = None
    """None: nothing is counted."""
    openapi: OpenApi | None = None
    mcp: McpOptions | None = None
    tool_schemas: ToolSchemaOptions | None = None
    static: StaticFileOptions | None = None
    statistics: StatisticsOptions | None = None
    audit_trail: AuditTrailOptions | None = None
    encrypts: bool = True
    """`encrypt` and `decrypt` do something."""
    application: str = "rowcall"
    """Values that the key ring protects open in the same application only."""
    application_name: JsonApplicationName | None = None
    """None: that of the connection stays."""
    outbound: OutboundOptions = field(default_factory=OutboundOptions)
    deadlines: DeadlineOptions = field(default_factory=DeadlineOptions)

    @property
    def asks_who_calls(self) -> bool:
        """Something that goes with every call names the caller."""
        asked = any(value.source is ValueSource.CLAIM for command in self.before for value in command.values)
        return asked or self.application_name is not None
