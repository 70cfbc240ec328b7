"""Everything about identity that one worker keeps for as long as it lives: sessions, keys, the password hasher."""

from __future__ import annotations

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.options import AuthOptions
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.service.identity.antiforgery import Antiforgery
from rowcall.service.identity.introspected_sessions import IntrospectedSessions
from rowcall.service.identity.passwords import Hasher
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.protector import Keys
from rowcall.service.request_context.client_address import address_reader


class Identity:
    def __init__(
        self,
        options: AuthOptions,
        keys: Keys,
        forwarding: Forwarding,
        antiforgery: AntiforgeryOptions | None = None,
    ) -> None:
        self.keys = keys
        asks = options.api_keys is not None or options.session_check is not None
        self.sessions = (IntrospectedSessions if asks else Sessions)(options, keys, forwarding)
        self.antiforgery = None if antiforgery is None else Antiforgery(antiforgery, keys, self.sessions)
        self.hasher = Hasher(options.login.iterations)
        self.address = address_reader(forwarding)
        """Address of the client of a request's scope."""

    def close(self) -> None:
        self.hasher.close()
