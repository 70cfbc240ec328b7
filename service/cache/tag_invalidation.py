"""The path that invalidates all responses with a tag: `POST <path>?tag=orders&tag=customer:5`, for authorized
callers.
"""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.endpoint.access import Access
from rowcall.core.errors.problems import Problem
from rowcall.core.text.query_text import QueryTextError, pairs
from rowcall.service.pipeline.fixed_route import FixedRoute, admission
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step


def tag_routes(services: Services, guards: tuple[Step, ...]) -> Iterator[FixedRoute]:
    """Yield the route that invalidates responses by tags, if it is configured.

    guards: steps that authenticate the caller and reject cross-site requests.
    """
    options = services.options.cache
    if not options.enabled or options.tags_path is None:
        return
    access = Access(roles=tuple(sorted(options.tags_roles)))
    admitting = admission("invalidating tags is", access, services.options.auth.schemes.challenge)
    yield FixedRoute("POST", options.tags_path, access, (*guards, *admitting, _invalidate(services)))


def _invalidate(services: Services) -> Step:
    """Return the step that invalidates all responses with any of the tags in the query string, and responds with their
    number. It raises `Problem`: 400 if there is no tag or the query string is malformed, 503 if the invalidation is not
    confirmed everywhere."""

    async def invalidate(context: RequestContext) -> None:
        try:
            tags = [value for name, value in pairs(context.scope.query_string) if name == "tag" and value]
        except QueryTextError as error:
            raise Problem(400, str(error)) from None
        if not tags:
            raise Problem(400, "the query names no tag: ?tag=orders")
        count = await services.caches.invalidate_tags(tags)
        body = b'{"invalidated":%d}' % count
        context.protocol.response_bytes(200, [("content-type", "application/json")], body)

    return invalidate
