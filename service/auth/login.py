"""The login endpoint: the row of the routine becomes a session (sign-in-14 to sign-in-23). The logout endpoint: the
routine runs and selects the sessions to end (sign-in-34).
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rowcall.core.auth.claims import Claim, NoImpersonatorError, User, claims_after_impersonation, impersonation_claims
from rowcall.core.auth.login import Cell, LoginRow, LoginRowError, read_login_row, row_json, scheme_names
from rowcall.core.building.installation import asks_for_second_factor
from rowcall.core.endpoint.capabilities import Impersonation
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.commands import Command
from rowcall.service.auth.credential_issuer import CredentialIssuer
from rowcall.service.database.call import Call
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.sql_call import rows_of
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import argument_text, comment_fields

if TYPE_CHECKING:
    from rowcall.service.auth.second_factor.demand import SecondFactorDemand
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

ANONYMOUS = "no user has these credentials"
"""The same title for every failure: a response of its own for a wrong password would reveal which names exist."""


def login_steps(endpoint: Endpoint, services: Services, call: Call) -> tuple[Step, ...]:
    """Return the steps behind the call of the routine, which sign in the user of its first row and respond. call:
    renders `CellRows`; it is changed to read one row only.
    """
    call.single = True
    return (_Login(endpoint, services).finish,)


class _Login:
    """The sign-in of one login endpoint."""

    def __init__(self, endpoint: Endpoint, services: Services) -> None:
        options = services.options.auth
        self._endpoint = endpoint
        self._options = options.login
        self._identity = options.identity
        self._status = options.login.status.lower()
        self._camel = services.options.camel_case
        self._hasher = services.auth.hasher
        self._guard = services.auth.guard
        self._issuer = CredentialIssuer(options, services.auth.sessions)
        self._impersonation = endpoint.options.impersonation
        self._demand = self._second_factor(endpoint, services)
        self._impersonation_valid = options.login.impersonation_valid
        columns = {column.column.name.lower() for column in endpoint.shape.columns}
        self._has_hash = options.login.hash.lower() in columns
        password_name = options.login.password.lower()
        names = [parameter.db_name.lower() for parameter in endpoint.parameters]
        self._passwords = [index for index, name in enumerate(names) if password_name in name]
        failed, succeeded = options.login.failed_command, options.login.succeeded_command
        self._failed = None if failed is None else Command(f"{endpoint.name} failed", failed, services)
        self._succeeded = None if succeeded is None else Command(f"{endpoint.name} succeeded", succeeded, services)

    def _second_factor(self, endpoint: Endpoint, services: Services) -> SecondFactorDemand | None:
        """Return the object that demands the second factor; None: this login does not ask for one."""
        options = services.options.auth.second_factor
        if options is None or not asks_for_second_factor(endpoint):
            return None
        # Imports what only services with a second factor need.
        from rowcall.service.auth.second_factor.demand import SecondFactorDemand

        return SecondFactorDemand(options, services)

    async def finish(self, context: RequestContext) -> None:
        """Sign in the user of the first row and respond. If the status of the row is not 200, status and body of the
        row are the response, and no user is signed in.

        Raises `Problem`: 401 if there is no user, the password is wrong (404 if the options say so), or the second
        factor is missing; the status of the row if that is 400 or above and the row has no body; 500 if the row cannot
        be used; 503 if too many passwords are being checked; and the errors of `Command.run` and
        `CredentialIssuer.sign_in`.
        """
        rows = rows_of(context)
        cells = rows[0] if rows else []
        row = LoginRow(refused=True) if self._finds_no_user(cells) else self._read(cells)
        if row.refused:
            if self._has_hash:
                await self._hasher.pretend(self._request_password(context))
            raise Problem(401, ANONYMOUS)
        # Without a hash column, the routine has decided. An empty hash beside a password is an account without a
        # password.
        if row.hash is not None or (self._has_hash and self._passwords and row.status == 200):
            await self._verify(context, row)
        await self._end_attempt(context, row)
        await self._answer(context, row, cells)

    async def _end_attempt(self, context: RequestContext, row: LoginRow) -> None:
        """Report a correct sign-in to the guard of sign-ins. If the row has a status between 201 and 399, the attempt
        counts neither as correct nor as failed. Raises `NoKeyError`."""
        attempt = None if self._guard is None else self._guard.attempt_of(context)
        if attempt is None or attempt.ended:
            return
        if row.status == 200:
            await attempt.record_success(context, by_browser=True)
        elif row.status < 400:
            await attempt.withdraw()

    def _finds_no_user(self, cells: list[Cell]) -> bool:
        """Return whether the routine found no user: it returned no row, or a row in which everything is NULL.

        Exception: if the routine returns a set with a status column, a row of NULLs is a result with an invalid status
        (sign-in-18), because a set returns such a row only on purpose.
        """
        if any(cell.text is not None for cell in cells):
            return False
        return not (self._endpoint.shape.is_set and any(cell.name.lower() == self._status for cell in cells))

    def _read(self, cells: list[Cell]) -> LoginRow:
        """Return the login row. Raises `Problem` 500 if the cells cannot be used."""
        try:
            return read_login_row(cells, self._options)
        except LoginRowError as error:
            log.error("%s: the login row cannot be used: %s", self._endpoint.name, error)
            raise Problem(500, "the login row cannot be used; the log of the service says why") from None

    def _request_password(self, context: RequestContext) -> str | None:
        """Return the password of the request: the first bound argument whose parameter has the name of a password.
        None: it is NULL, or no such parameter is bound.
        """
        bound = (index for index in self._passwords if context.mask & (1 << index))
        password = next(bound, None)
        return None if password is None else argument_text(context, password)

    async def _verify(self, context: RequestContext, row: LoginRow) -> None:
        """Verify the password against the hash of the row, and run the configured command for failed or for succeeded
        verifications. The latter gets a new hash if the stored one is outdated. Raises `Problem` 401, or 404 if the
        options distinguish wrong passwords, unless the password matches; 503 if too many passwords are being checked;
        and the errors of the command for succeeded verifications.

        A NULL, empty or missing password counts as a failure.
        """
        stored = row.hash or ""
        password = self._request_password(context)
        if not self._passwords:
            log.warning(
                "%s: its row has a hash, but no parameter has %r in its name; rename the parameter with the password",
                self._endpoint.name,
                self._options.password,
            )
        claims = dict(row.claims)
        values = [
            row.scheme,
            *(claims.get(kind) or None for kind in (self._identity.user_id, self._identity.user_name)),
        ]
        if not await self._hasher.verify(password, stored):
            # Users choose their names themselves, so the names may contain line breaks.
            log_values = (None if value is None else escape_unprintable(value) for value in values[1:])
            log.warning("%s: wrong password, user id %s, user name %s", self._endpoint.name, *log_values)
            await self._report_failure(context, values)
            if self._options.distinguishes_wrong_passwords:
                raise Problem(404, "the password is wrong")
            raise Problem(401, ANONYMOUS)
        if self._succeeded is not None:
            upgrade = 4 in self._succeeded.takes and password is not None and self._hasher.is_outdated(stored)
            renewed = await self._hasher.hash(password or "") if upgrade else None
            await self._succeeded.run(context, [*values, renewed])

    async def _report_failure(self, context: RequestContext, values: list[str | None]) -> None:
        """Run the command for failed verifications, if one is configured. If it fails, that is logged, and the response
        stays the same. values: scheme, user id and user name of the login row.
        """
        if self._failed is None:
            return
        try:
            await self._failed.run(context, values)
        except Problem as problem:
            log.error("%s: the command after a failed verification failed: %s", self._endpoint.name, problem.title)

    async def _answer(self, context: RequestContext, row: LoginRow, cells: list[Cell]) -> None:
        """Sign in the user of the row and send the response; if the status of the row is not 200, only send the
        response. Raises `Problem` as `_answer_status`, `_with_impersonation_claims`, `SecondFactorDemand.require` and
        `CredentialIssuer.sign_in` do.

        cells: of the row, which are the body if the options serialize it.
        """
        headers = list(comment_fields(context))
        if row.status != 200:
            self._answer_status(context, row, headers)
            return
        body = None if row.body is None else row.body.encode()
        content_type = self._options.content_type
        if body is None and self._options.serialize:
            text = row_json(cells, self._options, camel=self._camel)
            body, content_type = (
                f"[{text}]".encode() if self._endpoint.shape.is_set else text.encode(),
                "application/json",
            )
        if self._impersonation in (Impersonation.BEGINS, Impersonation.ENDS):
            row = self._with_impersonation_claims(context.user, row)
        sent = None if body is None else (content_type, body)
        if self._demand is not None:
            await self._demand.require(context, self._endpoint.name, row, sent)
        self._issuer.sign_in(context, row, headers, sent, anew=self._impersonation is None)

    def _with_impersonation_claims(self, user: User, row: LoginRow) -> LoginRow:
        """Return the row with the claims for its session: when an impersonation begins, with those of the real user in
        addition; when it ends, with those of the real user alone. user: the caller.

        Raises `Problem` 500 if the caller cannot be identified, or the row belongs to another user.
        """
        if self._impersonation is Impersonation.BEGINS:
            try:
                valid = self._impersonation_valid
                claims = impersonation_claims(
                    row.claims, user, self._identity, None if valid is None else time.time() + valid
                )
            except NoImpersonatorError:
                log.error(
                    "%s: the caller has neither an id nor a name, so the impersonating user would be unknown",
                    self._endpoint.name,
                )
                raise Problem(
                    500, "the impersonating user cannot be identified; the log of the service says why"
                ) from None
            log.info(
                "%s: %s acts as %s from now on",
                self._endpoint.name,
                self._format_user(user.claims),
                self._format_user(claims),
            )
            return replace(row, claims=claims)
        restored_claims = claims_after_impersonation(row.claims, user, self._identity)
        if restored_claims is None:
            log.error("%s: the row is not that of the impersonating user, but of another user", self._endpoint.name)
            raise Problem(500, "the login row cannot be used; the log of the service says why")
        log.info(
            "%s: %s no longer acts as %s",
            self._endpoint.name,
            self._format_user(restored_claims),
            self._format_user(user.claims),
        )
        return replace(row, claims=restored_claims)

    def _format_user(self, claims: tuple[Claim, ...]) -> str:
        """Return id and name of a user for the log."""
        by_type = dict(claims)
        parts = (by_type.get(kind) for kind in (self._identity.user_id, self._identity.user_name))
        return "user " + " ".join(escape_unprintable(part) for part in parts if part)

    def _answer_status(self, context: RequestContext, row: LoginRow, headers: list[tuple[str, str]]) -> None:
        """Respond with status and body of the row, without a sign-in. If the row has no body, a status of 400 or above
        is raised as `Problem`."""
        if row.body is not None:
            headers = [("content-type", self._options.content_type), *headers]
            context.protocol.response_bytes(row.status, headers, row.body.encode())
        elif row.status >= 400:
            raise Problem(row.status, "the routine has refused the sign-in")
        else:
            context.protocol.response_empty(row.status, headers)


def logout_steps(_endpoint: Endpoint, services: Services, call: Call) -> tuple[Step, ...]:
    """Return the steps behind the call of the routine, which respond and end the sessions of the schemes that its rows
    name; without names, the session of the request. They raise `Problem` 500 for a scheme that does not exist. call:
    renders `CellRows` if the routine returns something."""
    call.rows = False
    issuer = CredentialIssuer(services.options.auth, services.auth.sessions)

    def finish(context: RequestContext) -> None:
        names = [] if call.renderer is None else list(scheme_names(rows_of(context)))
        issuer.sign_out(context, names, list(comment_fields(context)))

    return (finish,)
