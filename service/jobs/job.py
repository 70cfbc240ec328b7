"""A job that a worker has taken, and the arguments of its routine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.parameter_injection import claim_parameters, hashed_parameters, with_injected
from rowcall.core.binding.binding import Binder, Binding
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import binding_parameters
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.text import exact_json
from rowcall.service.request_context.request_context import RequestContext

Report = Callable[[str], None]
"""Stores a message of progress."""

MOST_INTERRUPTIONS = 20
"""Attempts of a job that the service may break off without counting them; also those that end their worker."""


@dataclass(slots=True, eq=False)
class Job:
    """One attempt of a job.

    endpoint: its name. attempt: number of the attempt in the database, from 1, interrupted ones included. arguments:
    JSON; if `bound`, the arguments of a request after binding (`arguments_of`), with the names and types of the
    parameters, the tenant and headers; otherwise, an object by parameter names. claims: of the caller, as a JSON array
    of pairs of type and value; None for an anonymous caller. `arguments` and `claims` are parsed when the attempt
    begins, because a job that was enqueued in SQL may have invalid ones. cancelled: set when the caller has cancelled
    the job, or the worker stops.
    """

    id: str
    endpoint: str
    attempt: int
    arguments: str
    bound: bool
    claims: str | None
    report: Report
    trace: str | None = None
    """Trace context of the request that enqueued it (`traceparent`)."""
    interruptions: int = 0
    """Former attempts that the service has broken off."""
    has_key: bool = False
    """Its end may let another job with the same key run."""
    interruption: str | None = None
    """Reason of the service for which this attempt has ended or has to end; None: there is none."""
    finished: bool = False
    """The transaction of the routine has marked the job as finished."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the cancelled attempt has ended without a response."""

    @property
    def number(self) -> int:
        """Number of this attempt, from 1. Attempts that the service has broken off do not count, up to
        `MOST_INTERRUPTIONS`.
        """
        return self.attempt - min(self.interruptions, MOST_INTERRUPTIONS)

    @property
    def request(self) -> Mapping[str, Any]:
        """`arguments`, parsed, of a job that a request has enqueued: bound arguments as `values`, signature, tenant and
        headers. Empty for jobs enqueued in SQL."""
        content = orjson.loads(self.arguments) if self.bound else None
        return content if isinstance(content, Mapping) else {}

    @property
    def argument_names(self) -> frozenset[str]:
        """Names of the arguments of a job that was enqueued in SQL; empty if they are no JSON object."""
        try:
            content = orjson.loads(self.arguments)
        except orjson.JSONDecodeError:
            return frozenset()
        return frozenset(content) if isinstance(content, Mapping) else frozenset()

    @property
    def tenant(self) -> str | None:
        """Tenant of the request that enqueued it. None for jobs enqueued in SQL, which have claims only."""
        tenant = self.request.get("tenant")
        return tenant if isinstance(tenant, str) else None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers that attempts share with the request that enqueued the job: its time zone, and the execution id
        that its events have. Empty for jobs enqueued in SQL."""
        return [(str(name), str(value)) for name, value in self.request.get("headers", ())]

    def interrupt(self, reason: str) -> None:
        """Record that the attempt ends for a reason of the service, unless the caller has cancelled it before."""
        if not self.cancelled.is_set():
            self.interruption = reason

    def user(self, options: AuthOptions) -> User | None:
        """Return the caller who enqueued the job, with the claims of that time; None for an anonymous caller. Numbers
        are claims as they are written. Raises `BindingError` for claims of another form."""
        if self.claims is None:
            return None
        try:
            claims = exact_json.parse_with_number_texts(self.claims.encode())
        except ValueError:
            claims = None
        if not isinstance(claims, list) or not all(map(_is_claim, claims)):
            raise BindingError(400, "the claims of the job are no array of pairs of type and value")
        return User(tuple((_text(kind), _text(value)) for kind, value in claims), options.identity, "job")


def _is_claim(item: Any) -> bool:
    """Return whether a JSON value is an array of two texts, numbers or other single values."""
    return isinstance(item, list) and len(item) == 2 and not any(isinstance(part, list | dict) for part in item)


def _text(value: str | bool | None) -> str:
    """Return a part of a claim as text, as for a claim of a token: empty for null, else the text or JSON of a value."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def arguments_of(endpoint: Endpoint, context: RequestContext) -> bytes:
    """Return the bound arguments of a request as a JSON object: the text of each value, or null, by the index of its
    parameter. Parameters that get their default are left out.
    """
    values = iter(context.arguments)
    return orjson.dumps(
        {
            str(index): None if (value := next(values)) is None else value.decode(errors="surrogateescape")
            for index in range(len(endpoint.parameters))
            if context.mask >> index & 1
        }
    )


def parameter_signature(endpoint: Endpoint) -> str:
    """Return the names and types of the parameters as a text. It is stored with bound arguments, which fit only an
    endpoint with an equal text.
    """
    return ",".join(f"{item.db_name}:{item.cast}" for item in endpoint.parameters)


def bind_arguments(
    endpoint: Endpoint, job: Job, options: AuthOptions, *, timestamps_utc: bool, strict: StrictTypes | None
) -> Binding:
    """Return the arguments of a job for a call: those that were bound when it was enqueued, or its JSON document bound
    like the body of a request.

    The document may leave out parameters that the service fills: hashes of other parameters and, if the job has claims,
    parameters that are set from claims. timestamps_utc: timestamps without a zone are in UTC. strict: as in `Binder`.
    Raises `BindingError` for arguments that do not fit the endpoint.
    """
    if job.bound:
        request = job.request
        if request.get("signature") != parameter_signature(endpoint):
            raise BindingError(409, "the parameters of the endpoint have changed since the job was enqueued")
        values: Mapping[str, str | None] = request.get("values", {})
        mask = sum(1 << int(index) for index in values)
        texts = [values[key] for key in sorted(values, key=int)]
        arguments = [None if text is None else text.encode(errors="surrogateescape") for text in texts]
        return Binding(mask, arguments, None in arguments)
    hashed = hashed_parameters(endpoint)
    injected = {target for target, source in hashed if target != source}
    if job.claims is not None:
        injected |= {item.index for item in claim_parameters(endpoint, options.login)}
    endpoint = with_injected(endpoint, injected, {source for target, source in hashed if target == source})
    binder = Binder(
        binding_parameters(endpoint),
        Transport.BODY,
        endpoint.options.query_null,
        timestamps_utc,
        refusals=endpoint.refusals,
        strict=strict,
    )
    return binder.bind_body(job.arguments.encode())
