"""Owners of jobs: the caller whose request has enqueued a job, of one tenant if the endpoint has tenants."""

from __future__ import annotations

from collections.abc import Iterable

from rowcall.core.auth.claims import owner_of
from rowcall.core.endpoint.capabilities import Tenant
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.surroundings import with_tenant


def job_owner(tenant: Tenant | None, context: RequestContext) -> bytes:
    """Return the owner of the jobs that a request enqueues at an endpoint. Users of two tenants are two owners, even if
    they have the same id. All anonymous callers are one owner, whose jobs every caller may read who knows their ids.

    tenant: where the endpoint takes it from; None: from nowhere. It is part of the result, because the caller chooses
    the value of a header, and thus must not get the jobs of a tenant that is taken from the host name or a claim.
    """
    owner = owner_of(context.user)
    if tenant is None or context.user is None:
        return owner.encode()
    return with_tenant(f"{tenant.place.value} {tenant.name} {owner}".encode(), tenant, context)


def job_owners(tenants: Iterable[Tenant], context: RequestContext) -> list[bytes]:
    """Return the owners whose jobs are those of the caller of a request: the one of endpoints without tenants, and for
    each of `tenants` the one of the tenant that this request has."""
    return list(dict.fromkeys(job_owner(tenant, context) for tenant in (None, *tenants)))
