"""Read `Auth:Lockout`: lock-out and slow-down of sign-ins."""

from __future__ import annotations

from rowcall.core.accounts.lockout import Limit, LockoutOptions
from rowcall.core.config import Settings
from rowcall.service.options.sign_in.schemes import token
from rowcall.service.startup_error import StartupError

_P = "Auth:Lockout:"


def lockout_options(settings: Settings) -> LockoutOptions | None:
    """Return the options, or None if it is off. Raises `StartupError`."""
    if not settings.flag(_P + "Enabled"):
        return None
    delay, longest = settings.seconds(_P + "Delay"), settings.seconds(_P + "LongestDelay")
    reset = settings.seconds(_P + "ResetAfter")
    if delay <= 0 or longest < delay:
        raise StartupError(f"{_P}Delay has to be more than 0, and {_P}LongestDelay not less than it")
    if reset < longest:
        raise StartupError(f"{_P}ResetAfter has to be at least {_P}LongestDelay, or a delay would end before its time")

    def limit(key: str) -> Limit:
        return Limit(settings.integer(_P + key), delay, longest, reset)

    parts = settings.texts(_P + "AccountParameterNameContains") or ()
    return LockoutOptions(
        account=limit("FailuresPerAccount"),
        address=limit("FailuresPerAddress"),
        parameters=tuple(part.strip().lower() for part in parts if part.strip()),
        cookie=token(settings.text(_P + "CookieName"), "Lockout:CookieName"),
        known_for=settings.seconds(_P + "KnownFor"),
        redis=(settings.text_or_none(_P + "RedisConfiguration") or "").strip() or None,
    )
