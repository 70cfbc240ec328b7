"""The identity objects that one worker keeps for its lifetime: sessions, keys, the password hasher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.options import AuthOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.identity.antiforgery import Antiforgery
from rowcall.service.identity.introspected_sessions import IntrospectedSessions
from rowcall.service.identity.passwords import Hasher
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.protector import Keys
from rowcall.service.request_context.client_address import address_reader

if TYPE_CHECKING:
    from rowcall.service.identity.sign_in_guard import SignInGuard


class Identity:
    """Sessions, keys, antiforgery and password hasher of a worker. client: options of the HTTP client that downloads
    key sets. antiforgery: None: there are no antiforgery tokens."""

    def __init__(
        self,
        options: AuthOptions,
        keys: Keys,
        forwarding: Forwarding,
        client: ClientOptions,
        antiforgery: AntiforgeryOptions | None = None,
    ) -> None:
        self.keys = keys
        introspects = options.api_keys is not None or options.session_check is not None
        self.sessions = (IntrospectedSessions if introspects else Sessions)(options, keys, forwarding, client)
        self.antiforgery = None if antiforgery is None else Antiforgery(antiforgery, keys, self.sessions)
        self.guard: SignInGuard | None = None
        """Counts failed sign-ins, if `Auth:Lockout` is on."""
        self.hasher = Hasher(options.login.iterations, options.login.argon2)
        self.address = address_reader(forwarding)
        """Returns the client address of a request, given its scope."""

    def close(self) -> None:
        self.hasher.close()
