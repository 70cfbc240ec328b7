"""Options of a worker: frozen values that the supervisor creates once; endpoints are in the schema snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowcall.core.accounts.lockout import LockoutOptions
from rowcall.core.accounts.options import MailOptions
from rowcall.core.accounts.password_rules import PasswordRules
from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.batch.options import BatchOptions
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.cache.options import CacheOptions
from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.config.sections.http_server import HttpServer
from rowcall.core.config.sections.ssl import Ssl
from rowcall.core.documents.options import OpenApi, ReferencePage
from rowcall.core.downloads.options import DownloadOptions
from rowcall.core.endpoint.before_routine import BeforeCommand, use_claims
from rowcall.core.endpoint.capabilities import Tenant
from rowcall.core.endpoint.validation import Rule
from rowcall.core.errors.error_policy import ErrorPolicies
from rowcall.core.errors.retry import RetryStrategies
from rowcall.core.events.options import EventOptions
from rowcall.core.formats.exports import ExportOptions
from rowcall.core.formats.table_formats import TableFormats
from rowcall.core.http.compression import Compression
from rowcall.core.http.cors import Cors
from rowcall.core.http.deadlines import DeadlineOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.http.limits import HttpLimits
from rowcall.core.jobs.options import JobOptions
from rowcall.core.limits.policy import LimitOptions
from rowcall.core.mcp.options import McpOptions, ToolSchemaOptions
from rowcall.core.operations.audit_trail import AuditTrailOptions
from rowcall.core.operations.metrics import MetricsOptions
from rowcall.core.operations.options import HealthOptions
from rowcall.core.operations.slow_requests import SlowRequestOptions
from rowcall.core.operations.static_files import StaticFileOptions
from rowcall.core.operations.tracing import TracingOptions
from rowcall.core.outgoing.options import OutboundOptions
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.uploads.options import UploadOptions
from rowcall.core.webhooks.options import DeliveryOptions
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.databases import DatabaseAccess
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.replicas.options import ReplicaOptions
from rowcall.service.log.notices import NoticeMode
from rowcall.service.options.application_name import JsonApplicationName
from rowcall.service.options.capabilities.operations import StatisticsOptions

if TYPE_CHECKING:
    from rowcall.service.options.capabilities.description_options import Descriptions


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Options of a worker's HTTP server; times in seconds, sizes in bytes."""

    server: HttpServer = field(default_factory=HttpServer)
    limits: HttpLimits = field(default_factory=HttpLimits)
    """connections: of each listener of this worker. A limit of None is the default of granian."""
    ssl: Ssl = field(default_factory=Ssl)
    blocking_threads: int | None = None
    slow_client: float = PoolOptions().slow_client
    """Time for which a client may stop reading a streamed response."""
    compression: Compression | None = None
    """Compression of responses; None: responses are not compressed."""
    security_headers: tuple[tuple[str, str], ...] = ()
    """Headers of every response."""
    cors: Cors | None = None
    """None: responses carry no CORS headers."""

    @property
    def header_timeout(self) -> float:
        """Timeout for the head of a request to arrive, and for an idle connection."""
        return self.limits.header_timeout or self.limits.keep_alive or 30.0

    @property
    def keep_alive(self) -> bool:
        """Whether connections stay open between requests."""
        return self.limits.keep_alive != 0

    @property
    def read_at_once(self) -> int:
        """Size of one read of an HTTP/1 connection; 0: the limit of a request head."""
        return self.limits.read_at_once or 0

    @property
    def head_limit(self) -> int:
        """The limit of the request line and all headers together, in bytes."""
        return (self.limits.line_size or 8192) + (self.limits.headers_size or 32_768)

    @property
    def unguarded_head(self) -> bool:
        """Whether one read can be larger than the limit of a head, so that granian does not detect a head that is too
        large.
        """
        return self.read_at_once > self.head_limit


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """Options of endpoints that pass the request headers to their routine.

    key: the setting (GUC) that holds the headers. added: names and values that replace headers of the client.
    from_client: if a request supplies the parameter for headers, its value is used.
    """

    key: str
    added: tuple[tuple[str, str], ...]
    from_client: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Everything that a worker needs besides the schema snapshot."""

    target: ConnectionTarget
    database: DatabaseOptions
    others: Mapping[str, DatabaseAccess]
    """Databases besides the main one, by case-folded name of their connection."""
    replicas: ReplicaOptions | None
    """Replicas of the main database."""
    main_names: frozenset[str]
    """Case-folded names by which endpoints may select the main connection."""
    http: HttpOptions
    policies: ErrorPolicies
    rules: Mapping[str, Rule]
    """Rules that `validate` may name."""
    retries: RetryStrategies
    resolve_nested: bool
    """Composites at any depth are rendered as objects."""
    timestamps_utc: bool
    """Timestamps with time zone are rendered in UTC."""
    strict_types: StrictTypes | None
    """None: JSON values of other types are converted."""
    problem_types: bool
    """Problem documents contain `type`."""
    explains_unauthorized: bool
    """The body of a 401 says what is wrong with the credentials, and which ones the endpoint accepts."""
    problem_traces: bool
    """Problem documents contain `traceId`."""
    request_log: bool
    """Each request is logged."""
    correlation_header: str | None
    """Header with the correlation id of a request; None: there are no correlation ids."""
    notices: NoticeMode | None
    """How notices of PostgreSQL are logged; None: they are not logged."""
    before: tuple[BeforeCommand, ...]
    """Commands that run before every routine."""
    wrap_in_transaction: bool
    """All statements of a request run in one transaction, with transaction-local settings."""
    log_commands: bool
    """Commands are logged at level Debug."""
    log_command_parameters: bool
    """Values of parameters are logged with commands."""
    log_file_texts: bool
    """SQL files with several statements are logged with their text."""
    camel_case: bool
    """Parameters and columns are called `orderId` rather than `order_id` in requests and responses."""
    safe_numbers: bool
    """bigint and numeric are strings in JSON, and in client code and documents that describe the service."""
    tables: TableFormats
    uploads: UploadOptions
    hides_paths: bool
    """Anonymous callers get 401 also for paths that do not exist."""
    tenant: Tenant | None
    """Tenant of the requests of all endpoints; None: they have none, unless their annotations say so."""
    requires_authorization: bool
    """Endpoints without an annotation about authorization require it."""
    headers: RequestHeaders
    auth: AuthOptions
    antiforgery: AntiforgeryOptions | None
    passkeys: PasskeyOptions | None
    forwarding: Forwarding
    events: EventOptions
    cache: CacheOptions
    limits: LimitOptions
    postgrest: PostgRestOptions | None
    """None: PostgREST's interface is not served."""
    store: str = ""
    """Folder of the shared state of the host, created by the supervisor."""
    health: HealthOptions | None
    tracing: TracingOptions | None
    """None: requests are not traced."""
    query_tags: bool
    """Statements begin with a comment that names the endpoint."""
    slow_requests: SlowRequestOptions | None
    metrics: MetricsOptions | None
    """None: no metrics are recorded."""
    openapi: OpenApi | None = None
    reference: ReferencePage | None
    """The page with the API reference."""
    mcp: McpOptions | None = None
    tool_schemas: ToolSchemaOptions | None = None
    static: StaticFileOptions | None
    statistics: StatisticsOptions | None
    audit_trail: AuditTrailOptions | None
    encrypts: bool
    """Whether `encrypt` and `decrypt` have an effect."""
    encryption_name: str
    """Isolation boundary of encryption: other applications cannot decrypt the values of this one."""
    json_application_name: JsonApplicationName | None
    """None: `application_name` stays that of the connection."""
    outbound: OutboundOptions
    deadlines: DeadlineOptions
    """Deadlines that clients may send with requests."""
    batch: BatchOptions | None
    jobs: JobOptions | None
    exports: ExportOptions | None
    lockout: LockoutOptions | None
    passwords: PasswordRules
    mail: MailOptions
    downloads: DownloadOptions
    webhook_secrets: Mapping[str, str] = field(repr=False)
    """Secrets of `verify_webhook` by name in lower case."""
    deliveries: DeliveryOptions | None
    webhook_lifetime: float
    """Seconds for which received webhooks are recorded."""

    def with_documents(self, requested: Descriptions) -> WorkerOptions:
        """Return the options of a worker that serves these documents about the endpoints."""
        return replace(self, openapi=requested.openapi, mcp=requested.mcp, tool_schemas=requested.tool_schemas)

    @property
    def needs_caller(self) -> bool:
        """Whether every call needs the identity of the caller, for commands before routines or for
        `application_name`.
        """
        return use_claims(self.before) or self.json_application_name is not None
