"""The URL to which a browser is sent for a sign-in, with the parameters of this sign-in."""

from __future__ import annotations

import base64
import hashlib
import re
from urllib.parse import quote, urlencode

from rowcall.core.auth.external.options import Provider

_PLACE = re.compile(r"\{([012])\}")


def authorization_url(
    provider: Provider, endpoint: str | None, redirect_uri: str, state: str, verifier: str | None, nonce: str | None
) -> str:
    """Return the URL of the provider's page with all parameters.

    endpoint: from the discovery document, for a provider without a configured URL. redirect_uri: URL of this service to
    which the provider returns. verifier: of PKCE, of which only the digest is sent (RFC 7636, 4.2); None: without PKCE.
    nonce: is repeated in the ID token; None: none is sent.
    """
    if provider.auth_url:
        values = (quote(provider.client_id, safe=""), quote(redirect_uri, safe=""), quote(state, safe=""))
        url = _PLACE.sub(lambda match: values[int(match[1])], provider.auth_url).replace(" ", "%20")
    else:
        parameters = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": provider.scope,
            "state": state,
        }
        url = with_query(endpoint or "", parameters)
    added: dict[str, str] = {}
    if verifier is not None:
        added = {"code_challenge": code_challenge(verifier), "code_challenge_method": "S256"}
    if nonce is not None:
        added["nonce"] = nonce
    return with_query(url, added)


def with_query(url: str, added: dict[str, str]) -> str:
    """Return the URL with further query parameters, before its fragment."""
    if not added:
        return url
    head, mark, fragment = url.partition("#")
    sign = "" if head.endswith(("?", "&")) else "&" if "?" in head else "?"
    return f"{head}{sign}{urlencode(added, quote_via=quote)}{mark}{fragment}"


def code_challenge(verifier: str) -> str:
    """Return the digest of a PKCE verifier in base64url (method S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
