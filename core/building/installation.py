"""Annotations that need the schema `rowcall` in the database (`rowcall --install`).

An endpoint that promises more than it can keep without the schema is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowcall.core.catalogue.installation import RESTRICTED, Installation
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.tables.routines import TableOperation
from rowcall.core.webhooks.signatures import SecretError, check_secrets

NEEDED = {
    "idempotent": 1,
    "verify_webhook": 1,
    "job": 28,
    "schedule": 28,
    "publishes": 4,
    "issue_token": 8,
    "consume_token": 8,
    "send_mail": 8,
}
"""Version of the schema that each annotation needs."""
FUNCTIONS: Mapping[str, frozenset[str]] = {
    "job": RESTRICTED["Jobs:Enabled"],
    "schedule": RESTRICTED["Jobs:Enabled"],
}
"""Functions of the schema that the service calls for an annotation, with its own role."""
LIMITED_TOKENS = 12
"""Version of the schema that `issue_token … at most 5` needs."""
TOKENS_OF_TENANTS = 18
"""Version of the schema that `issue_token` and `consume_token` of an endpoint with a tenant need."""
SECOND_FACTOR = 11
"""Version of the schema that logins with a second factor need."""
_READING = ("GET", "HEAD", "QUERY")


def unmet_installation(
    endpoint: Endpoint,
    installation: Installation,
    used: Mapping[str, str],
    *,
    jobs: bool,
    second_factor: bool,
    anonymous_database_role: bool,
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each annotation that has no effect, and for each whose need is not met, which leaves the
    endpoint out.

    Needs are: a version of the schema `rowcall`, rights of the role of the service, the main connection, enabled jobs,
    and the parameters that `job` names. A login that asks for a second factor also needs a version of the schema.

    used: the line of each annotation. jobs: whether jobs are enabled. second_factor: whether logins ask for a second
    factor. anonymous_database_role: as for `schedule_obstacle`.
    """
    installed = installation.version
    if second_factor and installed < SECOND_FACTOR and asks_for_second_factor(endpoint):
        message = f"the second factor (Auth:SecondFactor) needs {_describe_schema(installed)}; the endpoint is left out"
        yield Diagnostic(endpoint.routine.identity, used.get("login"), f"{endpoint.name}: {message}", left_out=1)
    identity, source = endpoint.routine.identity, endpoint.routine.source
    obstacles = {
        "idempotent": idempotency_obstacle(endpoint),
        "verify_webhook": None,
        "publishes": publishing_obstacle(endpoint),
        "job": job_obstacle(endpoint),
        "schedule": schedule_obstacle(endpoint, anonymous_database_role=anonymous_database_role),
        "issue_token": None,
        "consume_token": None,
        "send_mail": None,
    }
    for annotation, obstacle in obstacles.items():
        line = used.get(annotation)
        if line is None:
            continue
        if obstacle is not None:
            # The comment of a table applies to all its operations.
            if not isinstance(source, TableOperation) or source.writes:
                yield Diagnostic(identity, line, f"{endpoint.name}: {annotation} has no effect: {obstacle}")
        elif endpoint.options.connection is not None or _has_databases_of_tenants(endpoint):
            message = f"{annotation} needs the main connection, where it is stored; the endpoint is left out"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
        elif annotation in ("job", "schedule") and not jobs:
            message = f"{annotation} is switched off (Jobs:Enabled); the endpoint is left out"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
        elif annotation == "job" and (unknown := _unknown_parameter(endpoint)) is not None:
            message = f"job names {unknown}, which is no parameter; the endpoint is left out"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
        elif installed < _required_version(endpoint, annotation):
            message = f"{annotation} needs {_describe_schema(installed)}; the endpoint is left out"
            yield Diagnostic(identity, line, f"{endpoint.name}: {message}", left_out=1)
        elif (right := installation.missing_right(FUNCTIONS.get(annotation, ()))) is not None:
            message = f"{annotation} needs a right: {right}; the endpoint is left out"
            yield Diagnostic(identity, line, message, left_out=1, switched=True)


def _has_databases_of_tenants(endpoint: Endpoint) -> bool:
    """Return whether requests of the endpoint run in the database of their tenant."""
    tenant = endpoint.options.tenant
    return tenant is not None and bool(tenant.connection)


def _unknown_parameter(endpoint: Endpoint) -> str | None:
    """Return a name behind `unique by`, `serial by` or `concurrency … per` that no parameter has; None if all exist."""
    job = endpoint.options.job
    names = () if job is None else (*(job.unique_by or ()), *job.serial_by)
    known = {name.lower() for item in endpoint.parameters for name in (item.db_name, item.api_name)}
    return next((name for name in names if name.lower() not in known), None)


def _required_version(endpoint: Endpoint, annotation: str) -> int:
    """Return the version of the schema that an annotation of the endpoint needs."""
    if annotation in ("issue_token", "consume_token") and endpoint.options.tenant is not None:
        return TOKENS_OF_TENANTS
    issued = endpoint.options.issued_token
    limited = annotation == "issue_token" and issued is not None and issued.most is not None
    return LIMITED_TOKENS if limited else NEEDED[annotation]


def _describe_schema(installed: int) -> str:
    """Return the end of a sentence about the schema `rowcall` that is missing or too old. installed: its version; 0: it
    does not exist."""
    state = f"has version {installed}" if installed else "is not in the database"
    return f"the schema rowcall, which {state}: run rowcall --install"


def asks_for_second_factor(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is a login that asks for the second factor of users who have one. It does not check
    whether second factors are enabled. False for a login with `second_factor off`, and for impersonations."""
    options = endpoint.options
    return options.login and options.second_factor is not False and options.impersonation is None


def unverified_webhooks(
    endpoint: Endpoint, secrets: Mapping[str, str], used: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Report `verify_webhook` whose signature cannot be verified, or whose repetitions would not be recognized.

    The endpoint is left out. secrets: of webhooks, by name in lower case. used: the line of each annotation.
    """
    webhook, line = endpoint.options.webhook, used.get("verify_webhook")
    if webhook is None or line is None:
        return
    reason = idempotency_obstacle(endpoint)
    if reason is None and endpoint.raw_body is None:
        reason = "it needs a parameter for the whole body (body_parameter_name), over which the signature is"
    if reason is None:
        try:
            check_secrets(webhook.scheme, secrets.get(webhook.secret, ""))
        except SecretError as error:
            reason = f"the secret Webhooks:Secrets:{webhook.secret} {error}"
    if reason is not None:
        message = f"{endpoint.name}: verify_webhook is not possible: {reason}; the endpoint is left out"
        yield Diagnostic(endpoint.routine.identity, line, message, left_out=1)


def schedule_obstacle(endpoint: Endpoint, *, anonymous_database_role: bool) -> str | None:
    """Return why a schedule cannot call the routine of an endpoint, as the end of a sentence; None if it can.

    anonymous_database_role: anonymous callers, and so schedules, have a role of PostgreSQL at endpoints with
    `role_from_claim`.
    """
    if isinstance(endpoint.routine.source, TableOperation):
        return "it is for functions, procedures and SQL files"
    needed = [item.api_name for item in endpoint.parameters if not (item.has_default or item.defaulted)]
    if needed:
        return f"nothing gives it {', '.join(needed)}"
    if endpoint.access.database_role and not anonymous_database_role:
        return "it has no claims that name a database role: write role_from_claim = false to run it as the service"
    return _common_obstacle(endpoint)


def publishing_obstacle(endpoint: Endpoint) -> str | None:
    """Return why the result of an endpoint cannot be published; None if it can."""
    if endpoint.method in _READING:
        return f"a {endpoint.method} changes nothing"
    if endpoint.options.caching is not None:
        return "its responses are cached"
    return _common_obstacle(endpoint)


def job_obstacle(endpoint: Endpoint) -> str | None:
    """Return why the routine of an endpoint cannot run later as a job; None if it can."""
    if endpoint.method in _READING:
        return f"a {endpoint.method} has to answer at once"
    return _common_obstacle(endpoint)


def _common_obstacle(endpoint: Endpoint) -> str | None:
    """Return why no job can call the routine, whatever the method; None if one can."""
    options = endpoint.options
    if endpoint.routine.may_commit:
        return "it may commit, which ends the transaction"
    if options.login or options.logout or options.upload is not None:
        return "sign-in, sign-out and uploads are requests of their own kind"
    if endpoint.passes_through or options.proxy_out is not None:
        return "another service gives the response"
    return None


def idempotency_obstacle(endpoint: Endpoint) -> str | None:
    """Return why requests of an endpoint cannot be recorded by an idempotency key or the id of a webhook, as the end of
    a sentence; None if they can."""
    options = endpoint.options
    if endpoint.method in _READING:
        return f"a {endpoint.method} only reads, so it can be repeated anyway"
    if options.login or options.logout:
        return "sign-in and sign-out are not recorded"
    if options.upload is not None:
        return "uploads are not recorded"
    if endpoint.passes_through or options.proxy_out is not None:
        return "another service gives the response"
    if options.caching is not None:
        return "its responses are cached"
    if options.job is not None and job_obstacle(endpoint) is None:
        return "its calls are jobs, of which `job unique by` or the routine itself makes one"
    return None
