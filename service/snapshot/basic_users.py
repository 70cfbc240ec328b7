"""Diagnostics for endpoints that require HTTP Basic and that no caller can use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rowcall.core.auth.password_hash import iterations_of
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.service.options.auth import is_secure

_BASIC = "Service:AuthenticationOptions:BasicAuth:"


class BasicUsers:
    def __init__(self, settings: Settings) -> None:
        self._hashed = settings.flag(_BASIC + "UseDefaultPasswordHasher")
        # A proxy in front may speak https.
        plain = not settings.flag("ForwardedHeaders:Enabled") and not is_secure(settings)
        self._refused = plain and settings.choice(_BASIC + "SslRequirement") == "Required"

    def unusable(self, endpoints: Iterable[Endpoint]) -> Iterator[Diagnostic]:
        for endpoint in endpoints:
            basic_auth = endpoint.options.basic_auth
            if basic_auth is None or not basic_auth.enabled or endpoint.options.invalidates:
                continue
            identity = endpoint.routine.identity
            if self._refused:
                message = (
                    f"{endpoint.name} requires HTTP Basic, which is accepted over https only, and this service does "
                    f"not listen on it, so no caller is admitted; {_BASIC}SslRequirement=Warning or Ignore accepts "
                    "it over http"
                )
                yield Diagnostic(identity, None, message)
            for name, stored in basic_auth.users if self._hashed else ():
                if iterations_of(stored) is None:
                    message = (
                        f"{endpoint.name}: the value of basic_auth for {name} is not a hash of `rowcall --hash`, so "
                        f"no password matches; {_BASIC}UseDefaultPasswordHasher=false accepts plain passwords"
                    )
                    yield Diagnostic(identity, None, message)
