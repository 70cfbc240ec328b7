"""An OpenID Connect provider with real sockets: authlib's authorization server with Python's HTTP server.

It signs in `user` without a question, or with a page (`asks`). Tests can change the content of its tokens and their
signature (`claims`, `sign`), like those of a dishonest or broken issuer.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from authlib.oauth2.rfc6749 import (  # type: ignore[import-untyped]
    AuthorizationServer,
    ClientMixin,
    OAuth2Error,
    OAuth2Request,
)
from authlib.oauth2.rfc6749.grants import (  # type: ignore[import-untyped]
    AuthorizationCodeGrant,
    RefreshTokenGrant,
)
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload  # type: ignore[import-untyped]
from authlib.oauth2.rfc6749.util import scope_to_list  # type: ignore[import-untyped]
from authlib.oauth2.rfc6750 import BearerTokenGenerator  # type: ignore[import-untyped]
from authlib.oauth2.rfc7009 import RevocationEndpoint  # type: ignore[import-untyped]
from authlib.oauth2.rfc7636 import CodeChallenge  # type: ignore[import-untyped]
from authlib.oidc.core.grants import OpenIDCode  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "rowcall-tests", "a secret of the tests"
ALMA = {"sub": "248289", "name": "Alma Dahl", "email": "alma@example.com", "email_verified": True}

Answer = tuple[int, list[tuple[str, str]], bytes]


class _Client(ClientMixin):  # type: ignore[misc]
    """The only client. Redirect addresses are compared exactly."""

    def __init__(self) -> None:
        self.redirect_uris: set[str] = set()

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> str:
        return next(iter(self.redirect_uris))

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method in ("client_secret_post", "client_secret_basic")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in ("authorization_code", "refresh_token")


class _Code:
    def __init__(self, request: Any) -> None:
        data = request.payload.data
        self.redirect_uri: str | None = data.get("redirect_uri")
        self.scope: str = data.get("scope", "")
        self.nonce: str | None = data.get("nonce")
        self.code_challenge = data.get("code_challenge")
        self.code_challenge_method = data.get("code_challenge_method")
        self.user = request.user
        self.code = ""

    def get_redirect_uri(self) -> str | None:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str | None:
        return self.nonce

    def get_auth_time(self) -> None:
        return None

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


class _Token:
    def __init__(self, token: dict[str, Any], user: Any) -> None:
        self.user = user
        self.scope: str = token.get("scope", "")
        self.refresh = token.get("refresh_token")

    def check_client(self, _client: Any) -> bool:
        return True

    def get_scope(self) -> str:
        return self.scope

    def get_expires_in(self) -> int:
        return 3600

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return False


class _Request(OAuth2Request):  # type: ignore[misc]
    def __init__(self, method: str, target: str, headers: Any, body: bytes) -> None:
        # authlib accepts only https; the address of the provider has no other effect.
        super().__init__(method, f"https://provider.test{target}", headers=headers)
        self._form = dict(parse_qsl(body.decode()))
        self._args = dict(parse_qsl(urlsplit(target).query))
        self.payload = BasicOAuth2Payload({**self._args, **self._form})

    @property
    def args(self) -> dict[str, str]:
        return self._args

    @property
    def form(self) -> dict[str, str]:
        return self._form


class IdentityProvider(AuthorizationServer):  # type: ignore[misc]
    def __init__(self, *, pkce: bool = True, oidc: bool = True) -> None:
        """pkce: it supports PKCE. oidc: it issues ID tokens."""
        super().__init__()
        self.user: dict[str, Any] = dict(ALMA)
        self.asks = False
        """Show the user a page first."""
        self.claims: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        """Changes the claims of an ID token before it is signed."""
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.sends_issuer = True
        self.info: dict[str, Any] | None = None
        """Claims of the userinfo endpoint. None: those of the ID token."""
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and form of every request."""
        self.client = _Client()
        self.codes: dict[str, _Code] = {}
        self.tokens: dict[str, _Token] = {}
        self.refreshing: dict[str, _Token] = {}
        self.published: list[RSAKey] = []
        self.rotate()
        extensions: list[Any] = [CodeChallenge(required=False)] if pkce else []
        self.register_grant(_codes_of(self), [*extensions, *([_identity_of(self)] if oidc else [])])
        self.register_grant(_refreshing_of(self), [_identity_of(self)] if oidc else [])
        self.register_endpoint(_revocation_of(self))
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                lambda *_a, **_k: secrets.token_urlsafe(24), lambda *_a, **_k: secrets.token_urlsafe(24)
            ),
        )
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- interface for tests -----------------------------------------------------------------------------------------

    def rotate(self) -> None:
        """Sign with a new key from now on, and withdraw the old one."""
        self.key = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})
        self.published = [self.key]

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    def logout_token(self, *, typ: str | None = "logout+jwt", **claims: Any) -> str:
        """Return the token for a sign-out at the provider. A claim that is None is omitted."""
        now = int(time.time())
        event: dict[str, object] = {"http://schemas.openid.net/event/backchannel-logout": {}}
        usual = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 120, "jti": secrets.token_hex(8)}
        all_claims = {**usual, "events": event, **claims}
        header = {"alg": "RS256", "kid": self.key.kid, **({} if typ is None else {"typ": typ})}
        return jwt.encode(header, {name: value for name, value in all_claims.items() if value is not None}, self.key)

    @contextlib.contextmanager
    def bent(self, **members: Any) -> Iterator[None]:
        """Change attributes while the block runs."""
        before = {name: getattr(self, name) for name in members}
        self.__dict__.update(members)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def forms(self, path: str) -> list[dict[str, str]]:
        return [form for _, request_path, form in list(self.seen) if request_path == path]

    # --- hooks of authlib -------------------------------------------------------------------------------------------

    def query_client(self, client_id: str) -> _Client | None:
        return self.client if client_id == CLIENT else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        saved = _Token(token, request.user)
        self.tokens[token["access_token"]] = saved
        if saved.refresh:
            self.refreshing[saved.refresh] = saved

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def create_oauth2_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> Answer:
        content = json.dumps(body).encode() if isinstance(body, dict) else (body or "").encode()
        return status, list(headers), content

    # --- endpoints -----------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        request = _Request(method, target, headers, body)
        path = urlsplit(target).path
        self.seen.append((method, path, request.form))
        if path == "/.well-known/openid-configuration":
            return _json(self.published_addresses())
        if path == "/keys":
            return _json({"keys": [key.as_dict(private=False) for key in self.published]})
        if path == "/authorize":
            return self._authorize(request, granted=method == "POST" or not self.asks)
        if path == "/token":
            token_response: Answer = self.create_token_response(request)
            return token_response
        if path == "/userinfo":
            token = self.tokens.get((headers.get("Authorization") or "").removeprefix("Bearer "))
            return _json({"error": "invalid_token"}, 401) if token is None else _json(self.info or token.user)
        if path == "/emails":
            emails = [
                {"email": "second@example.com", "verified": True},
                {"email": "first@example.com", "primary": True},
            ]
            return _json(emails)
        if path == "/revoke":
            revocation_response: Answer = self.create_endpoint_response("revocation", request)
            return revocation_response
        if path == "/logout":
            location = parse_qs(urlsplit(target).query)["post_logout_redirect_uri"][0]
            return 302, [("Location", location)], b""
        return _json({"error": "not_found"}, 404)

    def published_addresses(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "end_session_endpoint": f"{self.url}/logout",
            "revocation_endpoint": f"{self.url}/revoke",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": self.sends_issuer,
        }

    def _authorize(self, request: Any, *, granted: bool) -> Answer:
        try:
            grant = self.get_consent_grant(request, self.user)
        except OAuth2Error as error:
            error_response: Answer = self.handle_error_response(request, error)
            return error_response
        if not granted:
            page = '<!DOCTYPE html><title>Provider</title><form method="post"><button>Sign in</button></form>'
            return 200, [("Content-Type", "text/html")], page.encode()
        status, headers, body = self.create_authorization_response(request, self.user, grant)
        if self.sends_issuer:
            headers = [
                (name, f"{value}&{urlencode({'iss': self.url})}" if name == "Location" else value)
                for name, value in headers
            ]
        return status, headers, body


def _codes_of(provider: IdentityProvider) -> type:
    class Codes(AuthorizationCodeGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

        def save_authorization_code(self, code: str, request: Any) -> None:
            provider.codes[code] = _Code(request)
            provider.codes[code].code = code

        def query_authorization_code(self, code: str, _client: Any) -> _Code | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, authorization_code: _Code) -> None:
            del provider.codes[authorization_code.code]

        def authenticate_user(self, authorization_code: _Code) -> Any:
            return authorization_code.user

    return Codes


def _refreshing_of(provider: IdentityProvider) -> type:
    class Refreshing(RefreshTokenGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, refresh_token: str) -> _Token | None:
            return provider.refreshing.get(refresh_token)

        def authenticate_user(self, credential: _Token) -> Any:
            return provider.user

        def revoke_old_credential(self, credential: _Token) -> None:
            provider.refreshing.pop(credential.refresh or "", None)

    return Refreshing


def _revocation_of(provider: IdentityProvider) -> type:
    class Revocation(RevocationEndpoint):  # type: ignore[misc]
        CLIENT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

        def query_token(self, token_string: str, _hint: str | None) -> _Token | None:
            return provider.refreshing.get(token_string)

        def revoke_token(self, token: _Token, _request: Any) -> None:
            provider.refreshing.pop(token.refresh or "", None)

    return Revocation


def _identity_of(provider: IdentityProvider) -> Any:
    class Identity(OpenIDCode):  # type: ignore[misc]
        def exists_nonce(self, _nonce: str, _request: Any) -> bool:
            return False

        def generate_user_info(self, user: Any, scope: str) -> dict[str, Any]:
            names = {
                "sub",
                *(("name",) if "profile" in scope else ()),
                *(("email", "email_verified") if "email" in scope else ()),
            }
            return {name: value for name, value in user.items() if name in names}

        def encode_id_token(self, token: dict[str, Any], request: Any) -> str:
            from authlib.oidc.core.grants.util import create_half_hash  # type: ignore[import-untyped]

            now = int(time.time())
            claims = {"iss": provider.url, "aud": CLIENT, "iat": now, "exp": now + 300}
            if request.authorization_code is not None:
                claims.update(self.get_authorization_code_claims(request.authorization_code))
            claims["at_hash"] = create_half_hash(token["access_token"], "RS256").decode()
            claims.update(self.generate_user_info(request.user, scope_to_list(token["scope"])))
            return provider.sign(provider.claims(claims))

    return Identity()


def _json(content: Any, status: int = 200) -> Answer:
    return status, [("Content-Type", "application/json")], json.dumps(content).encode()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    provider: IdentityProvider


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment
    server: _Server

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, content = self.server.provider.answer(self.command, self.path, self.headers, body)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer

    def log_message(self, *_: object) -> None:
        pass
