"""Second factors of users in the schema `rowcall`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import orjson

from rowcall.core.accounts.one_time_codes import (
    matching_step,
    new_recovery_codes,
    new_secret,
    plain_code,
    recovery_hash,
)
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.auth.passkeys import bytea_text
from rowcall.core.errors.problems import Problem
from rowcall.core.text.array_literal import literal
from rowcall.service.database.call import Call
from rowcall.service.database.preamble import Values
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import sql_call
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Protector
from rowcall.service.request_context.request_context import RequestContext

_STATE = "select confirmed, recovery_codes, remembered from rowcall.second_factor_of($1, $2)"
_BEGIN = "select rowcall.begin_second_factor($1, $2)"
_TRY = "select secret, confirmed, wait from rowcall.try_second_factor($1, $2::int)"
_PASS = "select rowcall.pass_second_factor($1, $2::bigint)"  # noqa: S105 (no password)
_SET_CODES = "select rowcall.set_recovery_codes($1, $2::bytea[])"
_USE_CODE = "select rowcall.use_recovery_code($1, $2)"
_REMEMBER = "select rowcall.remember_device($1, $2, $3::float8, $4)"
_DEVICES = """\
select coalesce(json_agg(json_build_object(
    'id', id, 'description', description, 'created', created, 'expires', expires) order by created desc), '[]')
from rowcall.list_devices($1)"""
_REVOKE = "select rowcall.revoke_devices($1, $2::uuid)"
_REMOVE = "select rowcall.remove_second_factor($1)"

NO_APP = "no authenticator app is set up"
WRONG = "The code is not valid, or has been used"


class FactorState(NamedTuple):
    """The second factors of a user. confirmed: whether there is an authenticator app. recovery_codes: number of unused
    ones.
    """

    confirmed: bool
    recovery_codes: int
    remembered: bool
    """Whether the device of the request is remembered."""


class FactorStore:
    """Reads, verifies and changes second factors. Each method is one transaction, and also raises `Problem` if that
    fails. subject: user id."""

    def __init__(self, options: SecondFactorOptions, services: Services) -> None:
        self._options = options
        self._database = services.main_database
        self._keys = services.auth.keys
        self._protector = Protector(services.auth.keys, "second factor")
        own = partial(sql_call, "Auth:SecondFactor", services=services, sensitive=True)
        self._state = own(_STATE, 2)
        self._begin = own(_BEGIN, 2)
        self._try = own(_TRY, 2)
        self._pass = own(_PASS, 2)
        self._set_codes = own(_SET_CODES, 2)
        self._use_code = own(_USE_CODE, 2)
        self._remember = own(_REMEMBER, 4)
        self._devices = own(_DEVICES, 1)
        self._revoke = own(_REVOKE, 2)
        self._remove = own(_REMOVE, 1)

    async def state(self, context: RequestContext, subject: str, device: bytes | None) -> FactorState:
        """Return the second factors of a user. device: hash of the value of the device cookie; None: there is none."""
        values = [subject.encode(), None if device is None else bytea_text(device)]
        confirmed, codes, remembered = (await self._run(context, self._state, values)).split(b"\0")
        return FactorState(confirmed == b"t", int(codes), remembered == b"t")

    async def enrol(self, context: RequestContext, subject: str) -> bytes:
        """Create the secret of an authenticator app, store it as not confirmed, and return it. The first code confirms
        it. Raises `Problem`: 409 if there is a confirmed one, 503 if there is no key to encrypt it with."""
        secret = new_secret()
        sealed = self._protector.seal(secret, subject.encode())
        if await self._run(context, self._begin, [subject.encode(), sealed.encode()]) != b"t":
            raise Problem(409, "an authenticator app is set up already; remove it first")
        return secret

    async def prove(self, context: RequestContext, subject: str, code: object) -> None:
        """Verify the code of a confirmed authenticator app, and use it up. A wrong code counts towards the limit of
        attempts.

        Raises `Problem`: 400 if the code is no text of six digits, 401 if it is wrong or was used before, 409 without a
        confirmed authenticator app, 429 with `Retry-After` after too many wrong codes, 500 if the secret of the app
        cannot be decrypted.
        """
        async with self._database.transaction(self._try, context) as transaction:
            await self._verify_code(transaction, subject, code, confirmed=True)
            await transaction.commit()

    async def use_recovery_code(self, context: RequestContext, subject: str, code: str) -> None:
        """Use a recovery code up. Raises `Problem` 401 if it is not valid."""
        if await self._run(context, self._use_code, [subject.encode(), bytea_text(recovery_hash(code))]) != b"t":
            raise wrong_code()

    async def new_codes(self, context: RequestContext, subject: str, code: object, *, confirmed: bool) -> Sequence[str]:
        """Verify a code, replace the recovery codes, and return the new ones. Raises `Problem` as `prove` does; 409
        also if the authenticator app is not in the state that `confirmed` says.

        confirmed: the authenticator app is confirmed already; else the code is its first one, which confirms it.
        """
        async with self._database.transaction(self._try, context) as transaction:
            await self._verify_code(transaction, subject, code, confirmed=confirmed)
            codes = await self._replace_codes(transaction, subject)
            await transaction.commit()
        return codes

    async def remove(self, context: RequestContext, subject: str) -> None:
        """Remove authenticator app, recovery codes and remembered devices of a user."""
        await self._run(context, self._remove, [subject.encode()])

    async def remember(self, context: RequestContext, subject: str, device: bytes, description: str | None) -> None:
        """Remember a device. device: hash of the value of its cookie. description: shown to the user; None: there is
        none.
        """
        lifetime = str(self._options.remember or 0).encode()
        described = None if description is None else description.encode()
        await self._run(context, self._remember, [subject.encode(), bytea_text(device), lifetime, described])

    async def devices(self, context: RequestContext, subject: str) -> object:
        """Return the remembered devices of a user as JSON values."""
        return orjson.loads(await self._run(context, self._devices, [subject.encode()]))

    async def revoke_devices(self, context: RequestContext, subject: str, device_id: str | None) -> int:
        """Stop remembering a device, or all devices of the user if `device_id` is None. Return how
        many were removed.
        """
        values = [subject.encode(), None if device_id is None else device_id.encode()]
        return int(await self._run(context, self._revoke, values))

    # --- parts ---------------------------------------------------------------------------------------------------

    async def _run(self, context: RequestContext, call: Call, values: Values) -> bytes:
        """Run a call in a transaction of its own, and return its row: the texts of the columns, separated by NUL; empty
        if there is none.
        """
        async with self._database.transaction(call, context) as transaction:
            execution = await transaction.begin_with(call, values)
            await transaction.commit()
        return execution.body or b""

    async def _verify_code(self, transaction: Transaction, subject: str, text: object, *, confirmed: bool) -> None:
        """Verify a code within a transaction, which the caller has to commit. If the code is wrong, the transaction is
        committed here, so that the failure counts.

        confirmed: whether the authenticator app is confirmed already; otherwise the code is its first one.

        Raises:
            Problem: 400 if the text is no code, 401 if it is wrong or used, 409 without an authenticator app in this
                state, 429 with `Retry-After` after too many wrong codes, 500 if the secret of the app cannot be
                decrypted.
        """
        code = plain_code(text)
        if code is None:
            raise Problem(400, "code is not a text of six digits", code="invalid_request")
        execution = await transaction.begin_with(self._try, [subject.encode(), str(self._options.attempts).encode()])
        if not execution.body:
            raise Problem(409, NO_APP)
        sealed, is_confirmed, wait = execution.body.split(b"\0")
        if (is_confirmed == b"t") is not confirmed:
            raise Problem(409, NO_APP if confirmed else "the authenticator app is confirmed already")
        if float(wait) > 0:
            seconds = int(float(wait)) + 1
            detail = f"too many wrong codes; try again in {seconds} s, or use a recovery code"
            raise Problem(429, detail, headers=(("retry-after", str(seconds)),))
        step = matching_step(await self._decrypt_secret(sealed, subject), code, time.time(), self._options.drift)
        passed = (
            step is not None
            and (await transaction.run(self._pass, [subject.encode(), str(step).encode()])).body == b"t"
        )
        if not passed:
            await transaction.commit()
            raise wrong_code()

    async def _decrypt_secret(self, sealed: bytes, subject: str) -> bytes:
        """Return the decrypted secret of an authenticator app. Raises `Problem` 500 if its key is lost."""
        text = sealed.decode()
        try:
            try:
                return self._protector.open(text, subject.encode())
            except UnknownKeyError:
                await self._keys.read_again()
                return self._protector.open(text, subject.encode())
        except SealError:
            raise Problem(
                500, "the secret of the authenticator app cannot be decrypted with the keys of this service"
            ) from None

    async def _replace_codes(self, transaction: Transaction, subject: str) -> Sequence[str]:
        """Replace the recovery codes within a transaction, which the caller has to commit. Return the new ones."""
        codes = new_recovery_codes(self._options.recovery_codes)
        hashes = literal([bytea_text(recovery_hash(code)).decode() for code in codes], quoted=True)
        await transaction.run(self._set_codes, [subject.encode(), hashes.encode()])
        return codes


def wrong_code() -> Problem:
    """Return the 401 for a code that is wrong or was used before."""
    return Problem(401, title=WRONG, code="second_factor_invalid")
