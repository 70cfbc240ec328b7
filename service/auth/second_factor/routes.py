"""The endpoints of the second factor: set it up, prove it, replace recovery codes, remove it, list devices."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

import orjson
import segno

from rowcall.core.accounts.one_time_codes import base32, enrolment_address
from rowcall.core.auth.claims import ONE_TIME_CODE, User, with_second_factor
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.endpoint.capabilities import Impersonation
from rowcall.core.errors.problems import Problem, unauthorized_problem
from rowcall.service.auth.access import impersonation_refusal, refuse_api_key, sign_in_again, signed_in_at
from rowcall.service.auth.credential_issuer import NOT_STORED, CredentialIssuer
from rowcall.service.auth.cross_site import steps_before_sign_in
from rowcall.service.auth.second_factor.device_cookie import DeviceCookie
from rowcall.service.auth.second_factor.factor_store import FactorStore
from rowcall.service.auth.second_factor.pending_sign_in import PendingSignIn, PendingSignIns
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

_USERS = Access(impersonation=Impersonation.REFUSED)
_JSON: Headers = [("content-type", "application/json"), *NOT_STORED]
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def second_factor_routes(options: SecondFactorOptions, services: Services) -> Iterator[FixedRoute]:
    """Yield the route of each endpoint."""
    endpoints = _Endpoints(options, services)
    ahead = steps_before_sign_in(services, options.rate_limiter)
    path = options.path
    for method, end, access, step in (
        ("GET", "", _USERS, endpoints.show),
        ("POST", "/totp", _USERS, endpoints.enrol),
        ("POST", "/totp/confirm", _USERS, endpoints.confirm),
        ("POST", "/verify", ANYONE, endpoints.verify),
        ("POST", "/recovery-codes", _USERS, endpoints.replace_codes),
        ("POST", "/remove", _USERS, endpoints.remove),
        ("POST", "/devices/revoke", _USERS, endpoints.revoke_devices),
    ):
        yield FixedRoute(method, path + end, access, (*ahead, step))


class _Endpoints:
    """The steps of the endpoints of the second factor. All raise `Problem`: 400 for an invalid body, 401 for anonymous
    callers and, for changes, sign-ins that are too old, 403 for callers who act as another user or have no id, and for
    changes with an API key, 413 for a body that is too large. Steps that check a code also raise the errors of
    `FactorStore`; `verify` also raises 400 for callers without a session, and 401 for a token that is not valid."""

    def __init__(self, options: SecondFactorOptions, services: Services) -> None:
        auth = services.options.auth
        self._options = options
        self._identity = auth.identity
        self._challenge = auth.schemes.challenge
        self._schemes = auth.schemes
        self._limit = services.options.http.limits.sign_in_body_size
        self._store = FactorStore(options, services)
        self._pending = PendingSignIns(options, services)
        self._device = DeviceCookie(options, services.auth.sessions)
        self._issuer = CredentialIssuer(auth, services.auth.sessions)

    async def show(self, context: RequestContext) -> None:
        """Respond with the second factors and the remembered devices of the user."""
        subject = self._subject(context)
        state = await self._store.state(context, subject, self._device.present(context.scope))
        devices = await self._store.devices(context, subject)
        members = {
            "totp": state.confirmed,
            "recoveryCodes": state.recovery_codes,
            "deviceRemembered": state.remembered,
            "devices": devices,
        }
        _respond(context, members)

    async def enrol(self, context: RequestContext) -> None:
        """Begin with an authenticator app: respond with its secret, as text, address and QR code. Raises `Problem`: 409
        if one is confirmed already, 503 if there is no key to encrypt the secret with."""
        subject = self._subject(context, changes=True)
        secret = await self._store.enrol(context, subject)
        user: User = context.user
        account = user.first(self._identity.user_name) or subject
        address = enrolment_address(secret, self._options.issuer, account)
        _respond(context, {"secret": base32(secret), "uri": address, "qr": _qr_code(address)})

    async def confirm(self, context: RequestContext) -> None:
        """Confirm the authenticator app by a first code, and respond with the recovery codes."""
        subject = self._subject(context, changes=True)
        code = (await self._content(context)).get("code")
        codes = await self._verify_code(subject, lambda: self._store.new_codes(context, subject, code, confirmed=False))
        log.info("Auth:SecondFactor: user id %s has set up an authenticator app", escape_unprintable(subject))
        _respond(context, {"recoveryCodes": codes})

    async def replace_codes(self, context: RequestContext) -> None:
        """Verify a code of the authenticator app, and respond with new recovery codes. The former ones are not valid
        any more.
        """
        subject = self._subject(context, changes=True)
        code = (await self._content(context)).get("code")
        codes = await self._verify_code(subject, lambda: self._store.new_codes(context, subject, code, confirmed=True))
        _respond(context, {"recoveryCodes": codes})

    async def remove(self, context: RequestContext) -> None:
        """Remove authenticator app, recovery codes and remembered devices of the user, who proves the second factor."""
        subject = self._subject(context, changes=True)
        await self._prove(context, subject, _proof(await self._content(context)))
        await self._store.remove(context, subject)
        log.info("Auth:SecondFactor: user id %s has removed the second factor", escape_unprintable(subject))
        context.protocol.response_empty(204, NOT_STORED)
        context.answered = True

    async def revoke_devices(self, context: RequestContext) -> None:
        """Stop remembering the device that the member `id` of the body names; without it, all devices. Respond with
        their number."""
        subject = self._subject(context)
        refuse_api_key(context.user)
        device_id = (await self._content(context)).get("id")
        if device_id is not None and not (isinstance(device_id, str) and _UUID.fullmatch(device_id)):
            raise _invalid("id is not the id of a device")
        count = await self._store.revoke_devices(context, subject, device_id)
        _respond(context, {"revoked": count})

    async def verify(self, context: RequestContext) -> None:
        """Complete a sign-in with the second factor; without a token, prove it for the session of the request, which is
        issued again. The device is remembered if the client asks for that.
        """
        content = await self._content(context)
        proof = _proof(content)
        pending = await self._pending.read(content["token"]) if content.get("token") is not None else None
        subject = self._subject(context) if pending is None else pending.subject
        if pending is None:
            pending = self._of_session(context, subject)
        remember = content.get("remember")
        if remember not in (None, True, False):
            raise _invalid("remember is neither true nor false")
        if remember and self._options.remember is None:
            raise _invalid("devices are not remembered here (Auth:SecondFactor:RememberDevice)")
        await self._prove(context, subject, proof)
        cookies: list[str] = []
        if remember:
            device, cookies = self._device.new(context.scope)
            await self._store.remember(context, subject, device, context.scope.headers.get("user-agent"))
        row = replace(pending.row, claims=with_second_factor(pending.claims, ONE_TIME_CODE))
        self._issuer.sign_in(context, row, [("set-cookie", cookie) for cookie in cookies], pending.body)
        context.answered = True

    # --- parts ---------------------------------------------------------------------------------------------------

    def _of_session(self, context: RequestContext, subject: str) -> PendingSignIn:
        """Return the sign-in with which the session of the request can be issued again, with its claims and scheme.
        Raises `Problem` 400 for callers without a session."""
        user: User = context.user
        if self._schemes.find(user.scheme) is None:
            raise Problem(400, "the caller has no session: API keys and HTTP Basic have no second factor")
        return PendingSignIn(subject, user.claims, user.scheme, None)

    def _subject(self, context: RequestContext, *, changes: bool = False) -> str:
        """Return the id of the signed-in user.

        changes: the request changes the second factor; the options may require a recent sign-in for it.

        Raises: Problem: 401 for anonymous callers and old sign-ins, 403 for users who act as another user or have no
        id, and for changes with an API key.
        """
        user: User | None = context.user
        if user is None:
            raise unauthorized_problem(self._challenge, "the second factor is for signed-in users")
        if user.impersonates:
            raise impersonation_refusal()
        if changes:
            refuse_api_key(user)
        within = self._options.enrol_within
        if changes and within is not None and time.time() - signed_in_at(user) > within:
            raise sign_in_again(within)
        subject = user.first(self._identity.user_id)
        if subject is None:
            raise Problem(403, f"the session has no {self._identity.user_id}")
        return subject

    async def _content(self, context: RequestContext) -> Mapping[str, Any]:
        """Return the JSON object of the body; empty for an empty body. Raises `Problem`: 400 for any other body, 413
        for one that is too large.
        """
        body = await read_body(context.scope, context.protocol, self._limit)
        try:
            content = orjson.loads(body or b"{}")
        except orjson.JSONDecodeError:
            content = None
        if not isinstance(content, dict):
            raise _invalid("the body is not a JSON object")
        return content

    async def _prove(self, context: RequestContext, subject: str, proof: _Proof) -> None:
        """Verify the second factor of the request. Raises `Problem` if it is not valid, as the methods of `FactorStore`
        do.
        """
        code, recovery_code = proof
        if recovery_code is None:
            await self._verify_code(subject, lambda: self._store.prove(context, subject, code))
            return
        await self._verify_code(subject, lambda: self._store.use_recovery_code(context, subject, recovery_code))
        log.warning("Auth:SecondFactor: user id %s has used a recovery code", escape_unprintable(subject))

    @staticmethod
    async def _verify_code(subject: str, verify: Any) -> Any:
        """Run `verify` and return its result. If it raises `Problem` 401 or 429, log a wrong code of this subject, and
        raise it.
        """
        try:
            return await verify()
        except Problem as problem:
            if problem.status in (401, 429):
                log.warning(
                    "Auth:SecondFactor: wrong code, user id %s, status %d", escape_unprintable(subject), problem.status
                )
            raise


class _Proof(NamedTuple):
    """What proves the second factor: a recovery code or, if that is None, the code of an authenticator app."""

    code: object
    recovery_code: str | None


def _proof(content: Mapping[str, Any]) -> _Proof:
    """Return the proof of a request. Raises `Problem` 400 if there is none."""
    code, recovery_code = content.get("code"), content.get("recoveryCode")
    if recovery_code is None:
        if code is None:
            raise _invalid("code is missing, the code of the authenticator app, or recoveryCode")
    elif not isinstance(recovery_code, str) or not recovery_code:
        raise _invalid("recoveryCode is not a text")
    return _Proof(code, recovery_code)


def _invalid(detail: str) -> Problem:
    """Return the 400 for an invalid body."""
    return Problem(400, detail, code="invalid_request")


def _respond(context: RequestContext, members: Mapping[str, object]) -> None:
    context.protocol.response_bytes(200, _JSON, orjson.dumps(members))
    context.answered = True


def _qr_code(text: str) -> str:
    """Return a QR code as SVG, black on white."""
    file = BytesIO()
    segno.make(text, error="m", micro=False).save(file, kind="svg", scale=4, light="white", xmldecl=False, nl=False)
    return file.getvalue().decode()
