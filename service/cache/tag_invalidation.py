"""The path that invalidates all responses with a tag: `POST <path>?tag=orders&tag=customer:5`, for authorized
callers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator

from rowcall.core.errors.problems import Problem, unauthorized
from rowcall.core.text.query_text import QueryTextError, pairs
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step


def tag_routes(services: Services, guards: tuple[Step, ...]) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
    """Yield method, path and steps, if configured.

    guards: steps that authenticate the caller and reject cross-site requests.
    """
    options = services.options.cache
    if not options.enabled or options.tags_path is None:
        return
    yield "POST", options.tags_path, (*guards, _let_in(services), _forget(services))


def _let_in(services: Services) -> Step:
    roles = services.options.cache.tags_roles
    challenge = services.options.auth.schemes.challenge

    def authorize(context: RequestContext) -> None:
        if context.user is None:
            raise unauthorized(challenge, "invalidating tags is for signed-in users")
        if roles and roles.isdisjoint(context.user.roles):
            raise Problem(403, f"invalidating tags is for users with one of the roles {', '.join(sorted(roles))}")

    return authorize


def _forget(services: Services) -> Step:
    async def forget(context: RequestContext) -> None:
        try:
            tags = [value for name, value in pairs(context.scope.query_string) if name == "tag" and value]
        except QueryTextError as error:
            raise Problem(400, str(error)) from None
        if not tags:
            raise Problem(400, "the query names no tag: ?tag=orders")
        for place in services.options.cache.places:
            services.answers.expect_heard(place)
        count = 0
        for store in services.answers.every():
            for tag in tags:
                result = store.invalidate_tag(tag)
                count += await result if isinstance(result, Awaitable) else result
        body = b'{"invalidated":%d}' % count
        context.protocol.response_bytes(200, [("content-type", "application/json")], body)

    return forget
