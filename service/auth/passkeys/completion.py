"""The second request of each flow: verify the authenticator's response, then store the key or sign in (passkeys-4,
passkeys-5)."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.auth.login import LoginRow, LoginRowError, read_login_row
from rowcall.core.auth.passkeys import REQUIRED, PasskeyOptions, Row, bytea, bytea_text
from rowcall.core.errors.problems import Problem
from rowcall.core.text.array_literal import literal
from rowcall.service.auth.credential_issuer import CredentialIssuer
from rowcall.service.auth.passkeys.challenge_store import (
    ADD,
    LOGIN,
    REGISTER,
    ChallengeStore,
    IssuedChallenge,
    digest,
    is_same,
)
from rowcall.service.auth.passkeys.commands import BYTEA, TEXT, PasskeyCommand, Transactions, contract_problem
from rowcall.service.auth.passkeys.options import HEADERS, subject_digest
from rowcall.service.auth.passkeys.relying_party import RelyingParty
from rowcall.service.auth.passkeys.requests import (
    as_json,
    binary,
    challenge_id,
    from_base64url,
    names_one_record,
    parse_body,
    require_members,
    to_base64url,
    transports,
    with_address,
)
from rowcall.service.auth.passkeys.verification import (
    RefusedError,
    StoredCredential,
    decoy,
    verify_assertion,
    verify_registration,
)
from rowcall.service.auth.second_factor.passkey_factor import PasskeyFactor
from rowcall.service.auth.second_factor.pending_sign_in import PendingSignIn
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

T = TypeVar("T")
_UNREADABLE = frozenset({"22P02", "22003"})
"""SQLSTATEs for a challenge id that cannot be a value of the command's type."""
_NO_FUNCTION = "42883"
"""SQLSTATE for a text as challenge id if the command's function does not accept text."""


class CompletionEndpoints:
    """Steps for the paths that complete a flow. Each also raises the `Problem` of a failing command."""

    def __init__(
        self,
        options: PasskeyOptions,
        services: Services,
        transactions: Transactions,
        issued: ChallengeStore,
        relying_party: RelyingParty,
    ) -> None:
        commands = options.commands
        credential = {1: BYTEA}
        complete = {1: BYTEA, 2: BYTEA, 3: BYTEA}
        self._options = options
        self._transactions = transactions
        self._issued = issued
        self._relying_party = relying_party
        self._identity = services.options.auth.identity
        self._login_options = services.options.auth.login
        self._address = services.auth.address
        self._limit = services.options.http.limits.sign_in_body_size
        self._issuer = CredentialIssuer(services.options.auth, services.auth.sessions)
        second_factor = services.options.auth.second_factor
        self._second_factor = (
            None
            if second_factor is None
            else PasskeyFactor(second_factor, services, user_verified=options.user_verification == REQUIRED)
        )
        self._verify = PasskeyCommand("VerifyChallengeCommand", commands.verify, services)
        self._verify_text = PasskeyCommand("VerifyChallengeCommand", commands.verify, services, {1: TEXT})
        self._credential = PasskeyCommand("AuthenticateDataCommand", commands.credential, services, credential)
        self._complete = {
            ADD: PasskeyCommand("CompleteAddExistingUserCommand", commands.complete_add, services, complete),
            REGISTER: PasskeyCommand("CompleteRegistrationCommand", commands.complete_register, services, complete),
        }
        self._complete_login = PasskeyCommand(
            "CompleteAuthenticateCommand", commands.complete_login, services, credential
        )

    # --- new keys ------------------------------------------------------------------------------------------------

    async def add(self, context: RequestContext) -> None:
        """Verify the attestation of a further key of the signed-in user, store the key, and respond with its id.

        Raises `Problem`: 400 for an invalid request, challenge or attestation, 413 for a body that is too large, 500 if
        a row of a command cannot be used, 503 if the challenge cannot be checked because Redis is unavailable, and with
        the status of the operator's command if it does not store the key.
        """
        await self._keep(context, ADD)

    async def register(self, context: RequestContext) -> None:
        """Verify the attestation of the first key of a new user, store the key, and respond with its id. Raises
        `Problem` as `add` does."""
        await self._keep(context, REGISTER)

    async def _keep(self, context: RequestContext, flow: str) -> None:
        """Verify the attestation, store the key, and respond with its id. Raises `Problem` as `add` does. flow: `ADD`
        or `REGISTER`."""
        content = await self._content(context)
        require_members(content, "challengeId", "credentialId", "attestationObject", "clientDataJSON", "userContext")
        number = challenge_id(content)
        sent_id, attestation, client_data = (
            binary(content, name) for name in ("credentialId", "attestationObject", "clientDataJSON")
        )
        sent_context, _text = as_json(content["userContext"])
        user: User | None = context.user if flow == ADD else None
        issued = await self._issued_context(number, flow, sent_context, user)
        handle = _handle(json.loads(issued))
        analytics = with_address(content.get("analyticsData"), self._options.address_key, self._address(context.scope))
        command = self._complete[flow]

        async def verify_and_store(transaction: Transaction) -> bytes:
            challenge = await self._challenge(transaction, number, "registration")
            expected = self._relying_party.expected_response(context, challenge)
            credential = self._run_verification(
                "attestation_invalid", 400, lambda: verify_registration(client_data, attestation, expected)
            )
            if not hmac.compare_digest(credential.id, sent_id):
                raise Problem(400, title="Credential id mismatch", code="attestation_invalid")
            row = await command.run(
                transaction,
                bytea_text(credential.id),
                handle,
                bytea_text(credential.public_key),
                str(credential.algorithm),
                literal(list(transports(content.get("transports"))), quoted=True),
                "true" if credential.backup_eligible else "false",
                issued,
                analytics,
                None if user is None else user.json,
            )
            if row is not None and (status := command.status(row, self._options)) != 200:
                message = row.text(self._options.columns.message)
                raise Problem(status, title=message or "Failed to store passkey", code="store_failed")
            return credential.id

        stored_id = await self._transactions.run(context, verify_and_store)
        await self._issued.forget(number, flow)
        response = {"success": True, "credentialId": to_base64url(stored_id)}
        context.protocol.response_bytes(200, HEADERS, orjson.dumps(response))
        context.answered = True

    # --- logins --------------------------------------------------------------------------------------------------

    async def login(self, context: RequestContext) -> None:
        """Verify the assertion and sign the user in. If the row of the command that completes the login has another
        status than 200, its status and body are sent, without a sign-in.

        Raises `Problem`: 400 for an invalid request or challenge, 401 for an assertion, a credential or a token of a
        second factor that is not valid, 413 for a body that is too large, 500 if a row of a command cannot be used, 503
        if the challenge cannot be checked because Redis is unavailable, and with the status of an operator's command if
        it refuses the credential or, without a body, the login.
        """
        content = await self._content(context)
        require_members(content, "challengeId", "credentialId", "authenticatorData", "clientDataJSON", "signature")
        number = challenge_id(content)
        credential, data, client_data, signature = (
            binary(content, name) for name in ("credentialId", "authenticatorData", "clientDataJSON", "signature")
        )
        handle = binary(content, "userHandle") if content.get("userHandle") else None
        issue = await self._check_issue(number, LOGIN)
        if issue is not None and issue.credentials and digest(credential) not in issue.credentials:
            raise Problem(401, title="Credential not allowed", code="assertion_invalid")
        analytics = with_address(content.get("analyticsData"), self._options.address_key, self._address(context.scope))
        columns = self._options.columns

        async def verify_credential(transaction: Transaction) -> tuple[int, str | None]:
            challenge = await self._challenge(transaction, number, "authentication")
            expected = self._relying_party.expected_response(context, challenge)
            row = await self._credential.run(transaction, bytea_text(credential))
            status = 401 if row is None else self._credential.status(row, self._options)
            stored = None if row is None or status != 200 else self._stored_credential(row)
            count = self._run_verification(
                "assertion_invalid",
                401,
                # Unknown credentials are verified too, with the same reason of the refusal as for a known one, so that
                # neither time nor response reveal them. Otherwise, the `allowCredentials` of a name would show whether
                # there is an account.
                lambda: verify_assertion(client_data, data, signature, stored or decoy(), expected),
                unknown=None if stored or row is None or status == 200 else _authentication_problem(status),
            )
            if row is None or stored is None:
                raise _authentication_problem(401 if status == 200 else status)
            if handle is not None and row.has(columns.user_handle):
                owner = row.text(columns.user_handle)
                if owner is not None and handle not in (from_base64url(owner), owner.encode()):
                    raise Problem(401, title="User handle mismatch", code="assertion_invalid")
            return (count if self._options.commands.counts else 0), row.text("user_context")

        pending = await self._second_factor.read_pending_sign_in(content) if self._second_factor is not None else None
        count, user_context = await self._transactions.run(context, verify_credential)
        await self._issued.forget(number, LOGIN)

        async def complete(transaction: Transaction) -> Row | None:
            return await self._complete_login.run(
                transaction, bytea_text(credential), str(count), user_context, analytics
            )

        self._sign_in(context, await self._transactions.run(context, complete), pending)
        context.answered = True

    def _stored_credential(self, row: Row) -> StoredCredential | None:
        """Return the credential of the row, or None without a key. Raises `Problem` 500 for an unusable row."""
        columns = self._options.columns
        try:
            key = bytea(row.text(columns.public_key))
            algorithm = row.text(columns.algorithm)
            count = int(row.text(columns.sign_count) or 0) if self._options.commands.counts else None
            return None if key is None else StoredCredential(key, None if algorithm is None else int(algorithm), count)
        except ValueError as error:
            log.error("%s: its row cannot be used: %s", self._credential.key, error)
            raise contract_problem("Invalid row") from None

    def _sign_in(self, context: RequestContext, login_row: Row | None, pending: PendingSignIn | None) -> None:
        """Sign in with the row, which is a login row without a hash (sign-in-23). If the status of the row is not 200,
        status and body of the row are the response, and no user is signed in.

        pending: the sign-in of which the passkey is the second factor; None: the passkey is the first factor. Raises
        `Problem`: 401 if there is no row, if it refuses the sign-in, or if the passkey is that of another user than
        `pending`; the status of the row if that is 400 or above and the row has no body; 500 if the row cannot be used;
        and the errors of `CredentialIssuer.sign_in`.
        """
        if login_row is None or all(cell.text is None for cell in login_row.cells):
            raise _authentication_problem(401)
        try:
            row = read_login_row(login_row.cells, self._login_options)
        except LoginRowError as error:
            log.error("%s: the login row cannot be used: %s", self._complete_login.key, error)
            raise Problem(500, "the login row cannot be used; the log of the service says why") from None
        if row.refused:
            raise _authentication_problem(401)
        if row.status != 200:
            self._answer_status(context, row)
            return
        body = None if row.body is None else (self._login_options.content_type, row.body.encode())
        if self._second_factor is not None:
            row, body = self._second_factor.complete_sign_in(row, body, pending)
        self._issuer.sign_in(context, row, [], body)

    def _answer_status(self, context: RequestContext, row: LoginRow) -> None:
        """Respond with status and body of the row, without a sign-in. If the row has no body, a status of 400 or above
        is raised as `Problem`."""
        if row.body is not None:
            headers = [("content-type", self._login_options.content_type)]
            context.protocol.response_bytes(row.status, headers, row.body.encode())
        elif row.status >= 400:
            raise _authentication_problem(row.status)
        else:
            context.protocol.response_empty(row.status, [])

    # --- parts ---------------------------------------------------------------------------------------------------

    async def _content(self, context: RequestContext) -> Mapping[str, Any]:
        """Return the JSON object of the body. Raises `Problem`: 400 for any other body, 413 for one that is too
        large.
        """
        return parse_body(await read_body(context.scope, context.protocol, self._limit))

    async def _issued_context(self, number: str, flow: str, sent_context: Any, user: User | None) -> str:
        """Return the user context that was issued with the challenge of a new key, as JSON. The client's copy is never
        used.

        number: id of the challenge. sent_context: the client's copy, parsed. user: who is signed in; None for a new
        user. Raises `Problem`: 400 if the challenge is not known here or was issued for something else, if the client's
        copy differs, or if the context names another user than `user`; 503 if the challenge cannot be checked because
        Redis is unavailable.
        """
        issue = await self._check_issue(number, flow, user)
        if issue is None or issue.user_context is None:
            raise _no_challenge()
        if not is_same(issue.user_context, sent_context):
            log.warning("Auth:PasskeyAuth: refused a user context that is not the one of the challenge")
            raise Problem(400, title="User context mismatch", code="challenge_invalid")
        if user is not None:
            named = json.loads(issue.user_context).get(self._identity.user_id)
            if user.ids and isinstance(named, str | int) and str(named) not in user.ids:
                log.warning("Auth:PasskeyAuth: refused a user context that names another user than the signed-in one")
                raise Problem(400, title="User context mismatch", code="challenge_invalid")
        return issue.user_context

    async def _check_issue(self, number: str, flow: str, user: User | None = None) -> IssuedChallenge | None:
        """Return what the challenge was issued for; None if this is unknown here and the options allow it.

        number: id of the challenge. user: the user to whom it must have been issued; None: any user. Raises `Problem`:
        400 if the challenge was issued for another flow or user, is not valid any more, or is unknown and the options
        do not allow that; 503 if it cannot be checked because Redis is unavailable.
        """
        try:
            issue = await self._issued.find(number, flow)
        except LookupError:
            raise _no_challenge() from None
        if issue is None:
            if self._options.issued_only:
                raise _no_challenge()
        elif issue.flow != flow or (user is not None and issue.subject != subject_digest(user.subject)):
            log.warning("Auth:PasskeyAuth: refused a challenge that was issued to another user or for another flow")
            raise _no_challenge()
        return issue

    async def _challenge(self, transaction: Transaction, number: str, operation: str) -> bytes:
        """Return the challenge that the verify command returns. Raises `Problem`: 400 if there is none (any more), 500
        if it cannot be used, and the errors of the command.

        number: id of the challenge. operation: `registration` or `authentication`, as the command takes it.
        """
        command = self._verify if names_one_record(number) else self._verify_text
        try:
            row = await command.run(transaction, number, operation)
        except Problem:
            state = transaction.sqlstate
            if state in _UNREADABLE or (state == _NO_FUNCTION and command is self._verify_text):
                raise _no_challenge() from None
            raise
        cell = row.cells[0] if row is not None and row.cells else None
        if cell is None or cell.text is None:
            raise _no_challenge()
        try:
            challenge = bytea(cell.text) if cell.type_oid == BYTEA else from_base64url(cell.text)
        except ValueError:
            challenge = None
        if not challenge:
            log.error("%s: its first column is not a bytea", command.key)
            raise contract_problem("Invalid challenge")
        return challenge

    def _run_verification(self, code: str, status: int, verify: Callable[[], T], unknown: Problem | None = None) -> T:
        """Call `verify` and return its result. If the verification fails, raise `unknown` or, if that is None, a
        `Problem` with this status and code, and the reason as its title.
        """
        try:
            return verify()
        except RefusedError as error:
            if unknown is not None:
                raise unknown from None
            log.warning("Auth:PasskeyAuth: %s: %s", code, escape_unprintable(str(error)))
            raise Problem(status, title=str(error), code=code) from None


def _no_challenge() -> Problem:
    """Return the 400 for a challenge that is unknown or not valid any more."""
    return Problem(400, title="Challenge not found", code="challenge_invalid")


def _authentication_problem(status: int) -> Problem:
    return Problem(status, title="Authentication failed", code="authentication_failed")


def _handle(user_context: Any) -> bytes | None:
    """Return the user handle of a user context as `bytea` text, or None if it has none. A handle that is not base64url
    is encoded as text.
    """
    value = user_context.get("userHandle") if isinstance(user_context, dict) else None
    if not isinstance(value, str):
        return None
    decoded = from_base64url(value)
    return bytea_text(value.encode() if decoded is None else decoded)
