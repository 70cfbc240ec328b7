"""From a code to a profile: the code becomes tokens, the tokens tell who it is (external-sign-in-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jwt
import orjson

from rowcall.core.auth.external.options import Provider
from rowcall.core.auth.external.profile import email_of, name_of
from rowcall.service.auth.external.issuers import Addresses, Issuers, verified
from rowcall.service.auth.external.provider_client import ProviderClient, ProviderError

_ABOUT_THE_TOKEN = frozenset({"nonce", "at_hash", "c_hash", "azp", "acr", "amr", "auth_time", "jti"})


class Profile(NamedTuple):
    email: str
    name: str | None
    info: str
    """What the provider says, as JSON."""
    refresh: str | None
    identity: str | None
    """The ID token."""
    subject: str | None


class Profiles:
    """Of one provider."""

    def __init__(self, provider: Provider, talker: ProviderClient) -> None:
        self._provider = provider
        self._talker = talker
        self._issuers = Issuers(provider, talker)

    async def addresses(self) -> Addresses:
        """Raises `TalkError`."""
        return await self._issuers.addresses()

    async def by_code(
        self, code: str, redirect_uri: str, verifier: str | None, nonce: str | None, said_issuer: object
    ) -> Profile:
        """said_issuer: what came back beside the code (RFC 9207); None: nothing.

        Raises:
            TalkError: there is no profile.
        """
        addresses = await self.addresses()
        issuer = self._provider.issuer
        if issuer is not None and said_issuer != issuer and (said_issuer is not None or addresses.tells_issuer):
            raise ProviderError("the code comes from another issuer")
        fields = {"redirect_uri": redirect_uri, "code": code, **self._who_asks(addresses)}
        fields["grant_type"] = "authorization_code"
        if verifier is not None:
            fields["code_verifier"] = verifier
        return await self._profile(addresses, await self._tokens(addresses, fields), nonce)

    async def by_refresh_token(self, token: str, identity: str | None, subject: str | None) -> Profile:
        """identity, subject: of the sign-in; another person's are not taken.

        Raises:
            RefusedByProviderError: the token is good for nothing any more.
            TalkError: there is no profile.
        """
        addresses = await self.addresses()
        fields = {"grant_type": "refresh_token", "refresh_token": token, **self._who_asks(addresses)}
        tokens = await self._tokens(addresses, fields)
        found = await self._profile(addresses, tokens, None, again=True)
        if self._provider.issuer is not None and found.subject not in (None, subject):
            raise ProviderError("the refreshed tokens are somebody else's")
        return found._replace(
            refresh=found.refresh or token,
            identity=found.identity or identity,
            subject=subject,
            info=found.info if identity is None else _with_session(found.info, identity),
        )

    async def revoke(self, token: str) -> None:
        """Raises `TalkError`: it may still hold."""
        addresses = await self.addresses()
        if addresses.revoke is not None:
            fields = {"token": token, "token_type_hint": "refresh_token", **self._who_asks(addresses)}
            await self._talker.form(addresses.revoke, fields, self._basic(addresses))

    def _who_asks(self, addresses: Addresses) -> dict[str, str]:
        provider = self._provider
        if not provider.client_secret:
            return {"client_id": provider.client_id}
        if addresses.basic:
            return {}
        return {"client_id": provider.client_id, "client_secret": provider.client_secret}

    def _basic(self, addresses: Addresses) -> tuple[str, str] | None:
        provider = self._provider
        return (provider.client_id, provider.client_secret) if addresses.basic and provider.client_secret else None

    async def _tokens(self, addresses: Addresses, fields: Mapping[str, str]) -> dict[str, Any]:
        tokens = await self._talker.form(addresses.token, fields, self._basic(addresses))
        if not isinstance(tokens, dict) or not isinstance(tokens.get("access_token"), str):
            raise ProviderError(f"{addresses.token} gave no access_token")
        return tokens

    async def _profile(
        self, addresses: Addresses, tokens: Mapping[str, Any], nonce: str | None, *, again: bool = False
    ) -> Profile:
        """again: an issuer need not send another ID token (OpenID Connect Core, 12.2)."""
        provider = self._provider
        access: str = tokens["access_token"]
        claims: dict[str, Any] = {}
        if addresses.keys is not None and (not again or "id_token" in tokens):
            claims = await verified(provider, addresses.keys, tokens.get("id_token"), nonce, access)
        told, text = await self._told(addresses.info, access)
        subject = claims.get("sub") or told.get("sub")
        if provider.issuer is not None:
            if "sub" in told and told["sub"] != subject:
                raise ProviderError("the profile is about somebody else than the ID token")
            if "sub" not in told and addresses.info is not None and provider.info_url is None:
                # It could be anybody's (OpenID Connect Core, 5.3.2). An InfoUrl of the operator's may be of any kind.
                raise ProviderError("the profile does not say whom it is about")
            told = {**{name: value for name, value in claims.items() if name not in _ABOUT_THE_TOKEN}, **told}
            text = orjson.dumps(told).decode()
        email = email_of(told)
        if email and str(told.get("email_verified", True)).lower() == "false" and not provider.unverified_email:
            raise ProviderError("the provider has not verified the e-mail address (AllowUnverifiedEmail)")
        email = email or await self._email(access)
        if email is None:
            raise ProviderError("the provider tells no e-mail address")
        refresh, identity = tokens.get("refresh_token"), tokens.get("id_token")
        return Profile(
            email,
            name_of(told),
            text,
            refresh if isinstance(refresh, str) else None,
            identity if isinstance(identity, str) else None,
            subject if isinstance(subject, str) else None,
        )

    async def _told(self, url: str | None, access: str) -> tuple[dict[str, Any], str]:
        if url is None:
            return {}, "{}"
        body = await self._talker.question(url, access)
        try:
            told = orjson.loads(body)
        except orjson.JSONDecodeError:
            told = None
        if not isinstance(told, dict):
            raise ProviderError(f"{url} answered no JSON object")
        return told, body.decode()

    async def _email(self, access: str) -> str | None:
        url = self._provider.email_url
        if url is None:
            return None
        try:
            return email_of(orjson.loads(await self._talker.question(url, access)))
        except orjson.JSONDecodeError:
            raise ProviderError(f"{url} answered no JSON") from None


def _with_session(info: str, identity: str) -> str:
    """What is told of a user, with the id of his session there, which may stand only in the first ID token. It has been
    verified, and sealed since."""
    told = orjson.loads(info)
    session = jwt.decode(identity, options={"verify_signature": False}).get("sid")
    return info if session is None or "sid" in told else orjson.dumps({**told, "sid": session}).decode()
