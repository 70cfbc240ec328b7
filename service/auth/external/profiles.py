"""Redeem a code for tokens, and read the user's profile with them (external-sign-in-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jwt
import orjson

from rowcall.core.auth.external.options import Provider
from rowcall.core.auth.external.profile import email_of, name_of
from rowcall.service.auth.external.issuers import Addresses, Issuers, verify_id_token
from rowcall.service.auth.external.provider_client import ProviderClient, ProviderError

_ABOUT_THE_TOKEN = frozenset({"nonce", "at_hash", "c_hash", "azp", "acr", "amr", "auth_time", "jti"})
"""Claims of an ID token that are not part of the profile."""


class Profile(NamedTuple):
    """A user as the provider describes them; None: the provider has sent no such value. refresh: the refresh token.
    subject: the user's id at the provider.
    """

    email: str
    name: str | None
    info: str
    """The provider's claims about the user, as JSON."""
    refresh: str | None
    identity: str | None
    """The ID token."""
    subject: str | None


class Profiles:
    """Reads the profiles of one provider."""

    def __init__(self, provider: Provider, provider_client: ProviderClient) -> None:
        self._provider = provider
        self._provider_client = provider_client
        self._issuers = Issuers(provider, provider_client)

    async def addresses(self) -> Addresses:
        """Return the addresses of the provider. Raises `ProviderError`, or `Problem` 503 if too many requests to
        providers are in progress."""
        return await self._issuers.addresses()

    async def by_code(
        self, code: str, redirect_uri: str, verifier: str | None, nonce: str | None, received_issuer: object
    ) -> Profile:
        """Return the profile for an authorization code.

        received_issuer: the `iss` parameter beside the code (RFC 9207), or None. redirect_uri, verifier, nonce: as in
        the request for the code; None: not used.

        Raises:
            ProviderError: there is no profile.
            Problem: 503 if too many requests to providers are in progress.
        """
        addresses = await self.addresses()
        issuer = self._provider.issuer
        if issuer is not None and received_issuer != issuer and (received_issuer is not None or addresses.sends_issuer):
            raise ProviderError("the code comes from another issuer")
        fields = {"redirect_uri": redirect_uri, "code": code, **self._client_fields(addresses)}
        fields["grant_type"] = "authorization_code"
        if verifier is not None:
            fields["code_verifier"] = verifier
        return await self._profile(addresses, await self._tokens(addresses, fields), nonce)

    async def by_refresh_token(self, token: str, identity: str | None, subject: str | None) -> Profile:
        """Refresh the tokens at the provider, and return the profile with them. If the response has no new refresh
        token or ID token, the profile has the former one.

        token: refresh token of the provider. identity, subject: ID token and subject of the sign-in, or None; a profile
        of another subject is refused.

        Raises:
            RefusedByProviderError: the token is no longer valid.
            ProviderError: there is no profile.
            Problem: 503 if too many requests to providers are in progress.
        """
        addresses = await self.addresses()
        fields = {"grant_type": "refresh_token", "refresh_token": token, **self._client_fields(addresses)}
        tokens = await self._tokens(addresses, fields)
        profile = await self._profile(addresses, tokens, None, again=True)
        info = profile.info
        if self._provider.issuer is not None:
            if profile.subject not in (None, subject):
                raise ProviderError("the refreshed tokens belong to another user")
            info = info if identity is None else _with_session(info, identity)
        return profile._replace(
            refresh=profile.refresh or token, identity=profile.identity or identity, subject=subject, info=info
        )

    async def revoke(self, token: str) -> None:
        """Revoke a refresh token at the provider, if it has an endpoint for it. Raises `ProviderError`, or `Problem`
        503 if too many requests to providers are in progress; in both cases, the token may remain valid."""
        addresses = await self.addresses()
        if addresses.revoke is not None:
            fields = {"token": token, "token_type_hint": "refresh_token", **self._client_fields(addresses)}
            await self._provider_client.form(addresses.revoke, fields, self._basic(addresses))

    def _client_fields(self, addresses: Addresses) -> dict[str, str]:
        """Return the form fields that identify the client to the provider: id and secret, unless a header contains
        them.
        """
        provider = self._provider
        if not provider.client_secret:
            return {"client_id": provider.client_id}
        if addresses.basic:
            return {}
        return {"client_id": provider.client_id, "client_secret": provider.client_secret}

    def _basic(self, addresses: Addresses) -> tuple[str, str] | None:
        """Return client id and secret for the header Authorization; None if they are sent in the form."""
        provider = self._provider
        return (provider.client_id, provider.client_secret) if addresses.basic and provider.client_secret else None

    async def _tokens(self, addresses: Addresses, fields: Mapping[str, str]) -> dict[str, Any]:
        """Send a form with these fields to the token endpoint, and return its response, which has an access token.
        Raises `ProviderError` (`RefusedByProviderError` if the provider refuses the code or the token), or `Problem`
        503 if too many requests to providers are in progress."""
        tokens = await self._provider_client.form(addresses.token, fields, self._basic(addresses))
        if not isinstance(tokens, dict) or not isinstance(tokens.get("access_token"), str):
            raise ProviderError(f"{addresses.token} returned no access_token")
        return tokens

    async def _profile(
        self, addresses: Addresses, tokens: Mapping[str, Any], nonce: str | None, *, again: bool = False
    ) -> Profile:
        """Return the profile from the ID token and the user info. Raises `ProviderError`, or `Problem` 503 if too many
        requests to providers are in progress.

        tokens: response of the token endpoint. again: for a refresh; the issuer need not send another ID token (OpenID
        Connect Core, 12.2). nonce: of the login state; None: not used.
        """
        provider = self._provider
        access: str = tokens["access_token"]
        claims: dict[str, Any] = {}
        if addresses.keys is not None and (not again or "id_token" in tokens):
            claims = await verify_id_token(provider, addresses.keys, tokens.get("id_token"), nonce, access)
        user_info, text = await self._user_info(addresses.info, access)
        subject = claims.get("sub") or user_info.get("sub")
        if provider.issuer is not None:
            if "sub" in user_info and user_info["sub"] != subject:
                raise ProviderError("the profile is about another user than the ID token")
            if "sub" not in user_info and addresses.info is not None and provider.info_url is None:
                # The profile could be of any user (OpenID Connect Core, 5.3.2). An InfoUrl set by the operator may be
                # of any kind.
                raise ProviderError("the profile does not name its user (sub)")
            user_info = {**{name: value for name, value in claims.items() if name not in _ABOUT_THE_TOKEN}, **user_info}
            text = _format_profile(user_info)
        email = email_of(user_info)
        if email and str(user_info.get("email_verified", True)).lower() == "false" and not provider.unverified_email:
            raise ProviderError("the provider has not verified the e-mail address (AllowUnverifiedEmail)")
        email = email or await self._email(access)
        if email is None:
            raise ProviderError("the provider returned no e-mail address")
        refresh, identity = tokens.get("refresh_token"), tokens.get("id_token")
        return Profile(
            email,
            name_of(user_info),
            text,
            refresh if isinstance(refresh, str) else None,
            identity if isinstance(identity, str) else None,
            subject if isinstance(subject, str) else None,
        )

    async def _user_info(self, url: str | None, access: str) -> tuple[dict[str, Any], str]:
        """Request the user info; return it as a dictionary and as JSON text, both of an empty object without a URL.
        Raises `ProviderError`, or `Problem` 503 if too many requests to providers are in progress. access: access
        token."""
        if url is None:
            return {}, "{}"
        body = await self._provider_client.get(url, access)
        try:
            user_info = orjson.loads(body)
        except orjson.JSONDecodeError:
            user_info = None
        if not isinstance(user_info, dict):
            raise ProviderError(f"{url} returned no JSON object")
        return user_info, body.decode()

    async def _email(self, access: str) -> str | None:
        """Request the e-mail addresses of the user, if they have an endpoint of their own (`EmailUrl`), and return the
        one to use; None if there is none. Raises `ProviderError`, or `Problem` 503 if too many requests to providers
        are in progress. access: access token."""
        url = self._provider.email_url
        if url is None:
            return None
        try:
            return email_of(orjson.loads(await self._provider_client.get(url, access)))
        except orjson.JSONDecodeError:
            raise ProviderError(f"{url} returned no JSON") from None


def _with_session(info: str, identity: str) -> str:
    """Return the profile with the session id (`sid`) of the ID token added if the profile has none: an ID token of a
    refresh may lack it. info: profile as JSON. identity: ID token of an issuer. Raises `ProviderError` as
    `_format_profile` does.

    The signature is not checked: the ID token was verified at the sign-in and has been sealed since. ID tokens of
    providers without an issuer are not verified and may be of any kind.
    """
    user_info = orjson.loads(info)
    session = jwt.decode(identity, options={"verify_signature": False}).get("sid")
    return info if session is None or "sid" in user_info else _format_profile({**user_info, "sid": session})


def _format_profile(user_info: Mapping[str, Any]) -> str:
    """Return the profile as JSON. Raises `ProviderError` if it contains what orjson reads and cannot write: too many
    levels, integers of more than 64 bits, surrogates."""
    try:
        return orjson.dumps(user_info).decode()
    except orjson.JSONEncodeError as error:
        # Its text contains no values.
        raise ProviderError(f"the profile cannot be written as JSON: {error}") from None
