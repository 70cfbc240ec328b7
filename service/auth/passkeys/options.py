"""The first request of each flow: options with which a browser creates a key or signs with one (passkeys-6,
passkeys-7)."""

from __future__ import annotations

import json
import logging
from typing import Any

import orjson

from rowcall.core.auth.passkeys import OFFERED, PasskeyOptions, Row
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.text import exact_json
from rowcall.service.auth.passkeys.challenge_store import ADD, LOGIN, REGISTER, ChallengeStore, IssuedChallenge, digest
from rowcall.service.auth.passkeys.commands import PasskeyCommand, Transactions, contract_problem
from rowcall.service.auth.passkeys.relying_party import RelyingParty
from rowcall.service.auth.passkeys.requests import from_base64url, invalid
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

HEADERS = [("content-type", "application/json"), ("cache-control", "no-store")]
NO_ROW = "Command returned no row"


class OptionsEndpoints:
    """Steps for the paths that end in `options`. Each also raises the `Problem` of a command that fails in the
    database."""

    def __init__(
        self,
        options: PasskeyOptions,
        services: Services,
        transactions: Transactions,
        issued: ChallengeStore,
        relying_party: RelyingParty,
    ) -> None:
        commands = options.commands
        self._options = options
        self._transactions = transactions
        self._issued = issued
        self._relying_party = relying_party
        self._limit = services.options.http.limits.sign_in_body_size
        self._add = PasskeyCommand("ChallengeAddExistingUserCommand", commands.challenge_add, services)
        self._register = PasskeyCommand("ChallengeRegistrationCommand", commands.challenge_register, services)
        self._login = PasskeyCommand("ChallengeAuthenticationCommand", commands.challenge_login, services)

    async def add(self, context: RequestContext) -> None:
        """Send options for a further key of the signed-in user.

        Raises `Problem`: 400 if the body is neither empty nor JSON, 413 if it is too large, 500 if the row of the
        command cannot be used, 503 if there is no room for the challenge, and with the status of the command if it
        refuses.
        """
        body = await self._body(context)
        if body.strip() and _json(body) is _NONE:
            raise invalid("Invalid JSON in request body")
        user = context.user
        row = await self._row(context, self._add, user.json, body if body.strip() else None)
        await self._answer_new(context, row, ADD, subject_digest(user.subject))

    async def register(self, context: RequestContext) -> None:
        """Send options for the first key of a new user.

        Raises `Problem`: 400 if the body is no JSON object, 413 if it is too large, 500 if the row of the command
        cannot be used, 503 if there is no room for the challenge, and with the status of the command if it refuses.
        """
        body = await self._body(context)
        if not body.strip():
            raise invalid("Request body is required for standalone registration")
        if not isinstance(_json(body), dict):
            raise invalid("Invalid JSON in request body")
        row = await self._row(context, self._register, body)
        await self._answer_new(context, row, REGISTER, "")

    async def login(self, context: RequestContext) -> None:
        """Send options for a login, also if there is no room to store its challenge. A body that is no JSON is ignored.

        Raises `Problem`: 413 if the body is too large, 500 if the row of the command cannot be used, and with the
        status of the command if it refuses the login.
        """
        body = await self._body(context)
        content = _json(body)
        name = content.get("userName") if isinstance(content, dict) else None
        json_body = None if content is _NONE else body
        row = await self._row(context, self._login, name if isinstance(name, str) else None, json_body)
        columns = self._options.columns
        challenge, number = self._challenge(self._login, row)
        allowed = self._raw(self._login, row.text(columns.allow))
        await self._remember(number, IssuedChallenge(LOGIN, "", None, _credentials(allowed)))
        response: dict[str, Any] = {
            "challenge": challenge,
            "challengeId": number,
            "rpId": self._relying_party.id(context),
            "timeout": self._options.timeout,
            "userVerification": self._options.user_verification,
        }
        if allowed is not None:
            response["allowCredentials"] = allowed
        _send(context, response)

    # --- parts ---------------------------------------------------------------------------------------------------

    async def _body(self, context: RequestContext) -> bytes:
        return await read_body(context.scope, context.protocol, self._limit)

    async def _row(self, context: RequestContext, command: PasskeyCommand, *values: bytes | str | None) -> Row:
        """Run a command in a transaction and return its row. Raises `Problem` unless its status is 200."""

        async def run_command(transaction: Any) -> Row:
            row = await command.run(transaction, *values)
            if row is None:
                raise contract_problem(NO_ROW)
            status = command.status(row, self._options)
            if status != 200:
                raise self._refusal(command, status, row)
            return row

        return await self._transactions.run(context, run_command)

    def _refusal(self, command: PasskeyCommand, status: int, row: Row) -> Problem:
        """Return the problem for a row with another status than 200. Its title is the message of the row only for new
        keys.
        """
        if command is self._login:
            return Problem(status, title="Authentication failed", code="authentication_failed")
        message = row.text(self._options.columns.message)
        return Problem(status, title=message or "Failed to create registration options", code="store_failed")

    def _challenge(self, command: PasskeyCommand, row: Row) -> tuple[str, str]:
        """Return challenge and challenge id of the row. Raises `Problem` 500 if one is missing."""
        columns = self._options.columns
        challenge, number = row.text(columns.challenge), row.text(columns.challenge_id)
        if challenge is None or number is None:
            log.error("%s: %s or %s is NULL or missing", command.key, columns.challenge, columns.challenge_id)
            raise contract_problem("Command returned no challenge")
        return challenge, number

    def _raw(self, command: PasskeyCommand, text: str | None) -> Any:
        """Return the content of a column with JSON, or None if it is empty. Raises `Problem` 500 if it is invalid or
        has too many levels for a response. command: named in the log.
        """
        if not text:
            return None
        try:
            content = orjson.loads(text)
            orjson.dumps([content])  # a member of the response
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            log.error(
                "%s: a column must contain JSON, and contains something else or more than 250 levels", command.key
            )
            raise contract_problem("Command returned invalid JSON") from None
        return content

    def _user_context(self, command: PasskeyCommand, text: str | None, handle: str | None) -> str:
        """Return the user context to issue, as JSON: the object of the command, with the user handle as its member
        `userHandle`. JSON other than an object is ignored. Whole numbers keep all their digits.

        command: named in the log. text: JSON of the command's row; None: it has none. handle: None: the member is null.
        Raises `Problem` 500 if the JSON is invalid or has too many levels for a response.
        """
        self._raw(command, text)
        content = json.loads(text) if text else None
        user_context = {**(content if isinstance(content, dict) else {}), "userHandle": handle}
        return json.dumps(user_context, ensure_ascii=False, separators=(",", ":"))

    async def _answer_new(self, context: RequestContext, row: Row, flow: str, subject: str) -> None:
        """Store the challenge and send the options for a new key. Raises `Problem` 503 if there is no room for the
        challenge, 500 if the row cannot be used. row: of the command. flow: `ADD` or `REGISTER`. subject: digest of the
        signed-in user; empty for a new user.
        """
        options, columns = self._options, self._options.columns
        command = self._add if flow == ADD else self._register
        challenge, number = self._challenge(command, row)
        handle = row.text(columns.user_handle)
        user_context = self._user_context(command, row.text("user_context"), handle)
        if not await self._remember(number, IssuedChallenge(flow, subject, user_context)):
            raise unavailable("too many passkeys are being added at the same time; try again in a moment")
        content: dict[str, Any] = {
            "challenge": challenge,
            "challengeId": number,
            "rp": {"id": self._relying_party.id(context), "name": options.relying_party_name},
            "user": {
                "id": handle,
                "name": row.text(columns.user_name),
                "displayName": row.text(columns.display_name),
            },
            "pubKeyCredParams": [{"type": "public-key", "alg": algorithm} for algorithm in OFFERED],
            "timeout": options.timeout,
            "attestation": options.attestation,
            "authenticatorSelection": {
                "residentKey": options.resident_key,
                "userVerification": options.user_verification,
            },
        }
        excluded = self._raw(command, row.text(columns.exclude))
        if excluded is not None:
            content["excludeCredentials"] = excluded
        content["userContext"] = orjson.Fragment(user_context)
        _send(context, content)

    async def _remember(self, number: str, issue: IssuedChallenge) -> bool:
        """Store the challenge with the id `number`; return whether there was room, and log a warning if not."""
        stored = await self._issued.remember(number, issue)
        if not stored:
            log.warning("Auth:PasskeyAuth: there is no room to store what a challenge was issued for")
        return stored


_NONE = object()
"""Marks text that is no JSON."""


def _json(body: bytes) -> Any:
    """Return the parsed body, or `_NONE` if it is not JSON, or has too many levels to be a part of the context that the
    command returns."""
    try:
        return exact_json.parse(body)
    except ValueError:
        return _NONE


def subject_digest(subject: object) -> str:
    """Return a digest of `User.subject` in hexadecimal digits."""
    return digest(orjson.dumps(subject))


def _credentials(allowed: Any) -> tuple[str, ...]:
    """Return digests of the credential ids; empty if any credential may respond. allowed: member `allowCredentials` of
    the options, parsed.
    """
    if not isinstance(allowed, list):
        return ()
    ids = (from_base64url(item.get("id")) for item in allowed if isinstance(item, dict))
    return tuple(digest(credential_id) for credential_id in ids if credential_id is not None)


def _send(context: RequestContext, content: dict[str, Any]) -> None:
    context.protocol.response_bytes(200, HEADERS, orjson.dumps(content))
    context.answered = True
