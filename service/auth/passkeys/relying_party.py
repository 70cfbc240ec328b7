"""The relying party: the domain that passkeys belong to, and the origins whose pages may use them."""

from __future__ import annotations

from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.service.auth.passkeys.verification import ExpectedResponse
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.request_context import RequestContext

_SCHEMES = {"ws": "http", "wss": "https"}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class RelyingParty:
    """Determines the relying party of a request from the configuration or the request's host."""

    def __init__(self, options: PasskeyOptions, forwarding: Forwarding) -> None:
        self._options = options
        self._client = client_reader(forwarding)

    def id(self, context: RequestContext) -> str:
        """Return the domain of the passkeys: the configured one, else the host of the request."""
        return self._options.relying_party or without_port(self._host(context))

    def expected_response(self, context: RequestContext, challenge: bytes) -> ExpectedResponse:
        """Return the values that the authenticator's response has to match: the challenge, the allowed origins
        (configured, else that of the request), the domain of `id`, and the configured user verification."""
        options = self._options
        origins = options.origins or frozenset({self._request_origin(context)})
        return ExpectedResponse(challenge, origins, self.id(context), options.user_verification)

    def _host(self, context: RequestContext) -> str:
        scope = context.scope
        host: str = self._client(scope).host or scope.authority or scope.headers.get("host") or ""
        return host.lower()

    def _request_origin(self, context: RequestContext) -> str:
        scheme = self._client(context.scope).scheme
        scheme = _SCHEMES.get(scheme, scheme)
        return f"{scheme}://{self._host(context)}".removesuffix(_DEFAULT_PORTS.get(scheme, "/"))


def without_port(host: str) -> str:
    """Return the host without its port. An IPv6 address keeps its brackets."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
