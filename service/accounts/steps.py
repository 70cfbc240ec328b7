"""The call of a routine that consumes or issues tokens, or sends mail: all of it in one transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import orjson

from rowcall.core.accounts.checks import token_parameter
from rowcall.core.accounts.message import MailError, Template, mail_of
from rowcall.core.accounts.options import MailOptions
from rowcall.core.auth.login import Cell
from rowcall.core.endpoint.capabilities import IssuedToken
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.text.naming import api_name
from rowcall.service.accounts.templates import Templates
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.database.preamble import Values
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import rows_of, sql_call
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.surroundings import tenant_of
from rowcall.service.response import responses
from rowcall.service.response.headers import argument_text, comment_fields

log = logging.getLogger("rowcall")

# `{}`: the tenant, the last argument of endpoints with a tenant. Others call functions that older schemas have, too.
_ISSUE = "select rowcall.issue_token($1, $2, make_interval(secs => $3::float8){})"
_MAY_ISSUE = "select rowcall.may_issue_token($1, $2, $3::int, $4::float8{})"
_CONSUME = "select rowcall.consume_token($1, $2{})"
_SEND = "select rowcall.send_mail($1::jsonb)"
SUBJECT = b"request.token_subject"
STEP = 0.1
"""Seconds: responses about mail are sent after a multiple of it."""
INVALID_TOKEN = "the token is not valid, has expired, or has been used"  # noqa: S105 (no password)


class _Consume(NamedTuple):
    """The call that consumes the token in a parameter of the routine. parameter: its index."""

    call: Call
    purpose: bytes
    parameter: int


class _Issue(NamedTuple):
    """The calls that issue tokens for rows, and that limit the tokens of a subject."""

    call: Call
    token: IssuedToken
    limit: Call


class _Send(NamedTuple):
    """The call that enqueues mail, and template and sender of each mail."""

    call: Call
    template: Callable[[], Template]
    sender: str


def run_with_account_steps(endpoint: Endpoint, call: Call, services: Services) -> Step:
    """Return the step that runs the call of the routine in a transaction with its tokens and mail.

    If the rows get tokens or become mail, the step sends the response: 202 for mail, whether there was a row or not;
    else the rows with their tokens.

    If the token of the request is valid, but an argument of a STRICT routine is NULL, the token stays valid. The step
    responds with 204 without a call then; at a sign-in or sign-out, the result has no row.

    The step raises `Problem`: 400 if the token of the request is missing or not valid; if the response has the tokens,
    404 for a `single` endpoint without a row, and 429 if a subject has too many tokens; and the errors of the call.
    """
    options = endpoint.options
    own = partial(sql_call, f"{endpoint.name} accounts", services=services, sensitive=True)

    def token_call(sql: str, values: int) -> Call:
        """Return the call of the SQL, with the tenant as one more value if the endpoint has one."""
        if options.tenant is None:
            return own(sql.format(""), values)
        return own(sql.format(f", ${values + 1}"), values + 1)

    consume = issue = send = None
    parameter = token_parameter(endpoint)
    if options.consumed_token is not None and parameter is not None:
        consume = _Consume(token_call(_CONSUME, 2), options.consumed_token.purpose.encode(), parameter)
    if options.issued_token is not None:
        issue = _Issue(token_call(_ISSUE, 3), options.issued_token, token_call(_MAY_ISSUE, 4))
    if options.mail is not None:
        mail: MailOptions = services.options.mail
        templates = services.host.get_or_create("mail templates", lambda: Templates(mail.templates))
        name = options.mail.template
        send = _Send(own(_SEND, 1), lambda: Template() if name is None else templates.find(name), mail.sender)
    return _Run(endpoint, services, call, consume, issue, send).run


def _object(cells: list[Cell], camel: bool) -> str:
    members = (f"{orjson.dumps(api_name(cell.name, camel)).decode()}:{cell.json}" for cell in cells)
    return "{" + ",".join(members) + "}"


class _Run:
    """The transaction of one endpoint with tokens or mail."""

    def __init__(
        self,
        endpoint: Endpoint,
        services: Services,
        call: Call,
        consume: _Consume | None,
        issue: _Issue | None,
        send: _Send | None,
    ) -> None:
        self._endpoint = endpoint
        self._camel = services.options.camel_case
        self._database: Database = services.database
        self._guard = services.auth.guard
        self._call = call
        self._no_content = responses.no_content(endpoint) if endpoint.skips_null_calls else None
        """Responds without a call if an argument is NULL; None: another step responds."""
        self._consume = consume
        self._issue = issue
        self._send = send

    def run(self, context: RequestContext) -> Awaitable[None]:
        return self._run(context)

    async def _run(self, context: RequestContext) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with self._database.transaction(self._call, context) as transaction:
            if self._consume is not None:
                await self._consume_token(self._consume, transaction, context)
                if context.has_null and self._endpoint.routine.strict:
                    await self._skip(transaction, context)
                    return
            await transaction.call()
            responds = self._issue is not None or self._send is not None
            rows = (
                [await self._process_row(cells, transaction, context) for cells in rows_of(context)] if responds else []
            )
            await transaction.commit()
        await self._end_attempt(context)
        if self._send is not None:
            # Whether there was a row must not be visible, neither by the response nor by the time that its mail takes.
            await asyncio.sleep(STEP - (loop.time() - began) % STEP)
            context.protocol.response_empty(202, [*comment_fields(context), ("content-length", "0")])
        elif self._issue is not None:
            self._respond(context, rows)

    async def _skip(self, transaction: Transaction, context: RequestContext) -> None:
        """End a request with a valid token whose routine PostgreSQL would not run: roll back, so that the token stays
        valid, and respond. Raises `Problem` if the database fails."""
        if self._no_content is None:
            await transaction.call()
        await transaction.roll_back()
        if self._no_content is not None:
            self._no_content(context)
            context.answered = True

    async def _end_attempt(self, context: RequestContext) -> None:
        """Report a valid token to the guard of sign-ins, which counts invalid ones. If the request has begun no
        attempt, do nothing. Raises `NoKeyError`."""
        attempt = None if self._guard is None else self._guard.attempt_of(context)
        if attempt is not None:
            await attempt.record_success(context, by_browser=False)

    def _respond(self, context: RequestContext, rows: list[list[Cell]]) -> None:
        """Respond with the rows, each with its token. Raises `Problem` 404 if the endpoint is `single` and there is no
        row.
        """
        objects = [_object(cells, self._camel) for cells in rows]
        if self._endpoint.options.single and not objects:
            raise Problem(404, "there is no row")
        body = objects[0] if self._endpoint.options.single else f"[{','.join(objects)}]"
        headers = [item for item in comment_fields(context) if item[0].lower() not in ("cache-control", "content-type")]
        headers += [("content-type", "application/json"), ("cache-control", "no-store")]
        context.protocol.response_bytes(self._endpoint.success_status, headers, body.encode())

    def _tenant(self, context: RequestContext) -> Values:
        """Return a list with the tenant of the request, the last argument of the SQL functions for tokens; with NULL
        for a job without a tenant. The list is empty if the endpoint is for all tenants."""
        place = self._endpoint.options.tenant
        if place is None:
            return []
        tenant = tenant_of(place, context)
        return [None if tenant is None else tenant.encode()]

    async def _consume_token(self, consume: _Consume, transaction: Transaction, context: RequestContext) -> None:
        """Consume the token of the request, and put its subject into a setting that the routine can read. Raises
        `Problem` 400 if the token is missing or not valid.
        """
        token = argument_text(context, consume.parameter)
        if not token:
            raise Problem(400, INVALID_TOKEN)
        values: Values = [consume.purpose, token.encode(), *self._tenant(context)]
        execution = await transaction.begin_with(consume.call, values)
        if not execution.body:
            raise Problem(400, INVALID_TOKEN)
        await transaction.set([SUBJECT, execution.body])

    async def _process_row(self, cells: list[Cell], transaction: Transaction, context: RequestContext) -> list[Cell]:
        """Issue the token of a row and enqueue its mail, as far as the endpoint has them. Return the cells of the row
        for the response, with the token as a further cell `token` if the endpoint sends no mail.

        A row without a subject for the token gets neither token nor mail. If the subject has too many tokens, the same
        applies at an endpoint that sends mail; at any other, `Problem` 429 is raised (`_may_issue`).
        """
        token = None
        if self._issue is not None:
            name = self._issue.token.subject.lower()
            subject = next((cell.text for cell in cells if cell.name.lower() == name), None)
            if subject is None:
                return cells
            issued, tenant = self._issue.token, self._tenant(context)
            most = issued.most
            if most is not None and not await self._may_issue(self._issue, most, subject, tenant, transaction):
                return cells
            values: Values = [issued.purpose.encode(), subject.encode(), str(issued.seconds).encode(), *tenant]
            token = ((await transaction.run(self._issue.call, values)).body or b"").decode()
        if self._send is not None:
            await self._enqueue(self._send, cells, token, transaction)
        elif token is not None:
            cells = [*cells, Cell("token", 25, False, token, f'"{token}"')]
        return cells

    async def _may_issue(
        self, issue: _Issue, most: int, subject: str, tenant: Values, transaction: Transaction
    ) -> bool:
        """Return whether the subject may get another token. If it has too many: raise `Problem` 429 if the response
        would contain the token; return False if a mail would, because the caller must not learn whether the subject
        exists. most: tokens that the subject may get in the period of the token's options. tenant: as `_tenant`
        returns it.
        """
        purpose, period = issue.token.purpose, issue.token.period
        values: Values = [purpose.encode(), subject.encode(), str(most).encode(), str(period).encode(), *tenant]
        if (await transaction.run(issue.limit, values)).body == b"t":
            return True
        limit = f"{most} tokens for {purpose} in {period:g} s"
        if self._send is None:
            raise Problem(429, f"this subject has got {limit}", headers=(("retry-after", str(int(period) or 1)),))
        log.warning("%s: a subject has got %s, so no mail is sent", self._endpoint.name, limit)
        return False

    async def _enqueue(self, send: _Send, cells: list[Cell], token: str | None, transaction: Transaction) -> None:
        """Enqueue the mail of a row, if the row makes one. Faults of row or template are only logged. token: for the
        mail; None: it contains none.
        """
        try:
            mail = mail_of(cells, send.template(), token, send.sender)
        except (MailError, OSError) as error:
            # The caller must not learn whether there was a row.
            log.error("%s: a row makes no mail: %s", self._endpoint.name, error)
            return
        if mail is not None:
            await transaction.run(send.call, [orjson.dumps(mail)])
