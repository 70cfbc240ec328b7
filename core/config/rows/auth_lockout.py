"""Keys of the lock-out and slow-down of sign-ins."""

from rowcall.core.config.keys import Key, flag, integer, interval, section, text, texts

_P = "Auth:Lockout:"

ROWS: tuple[Key, ...] = (
    section("Auth:Lockout", "Lock-out and slow-down after failed sign-ins and invalid one-time tokens."),
    flag(_P + "Enabled", False, "Count failed sign-ins, and refuse further ones for a time with 429."),
    integer(
        _P + "FailuresPerAccount",
        5,
        "Failed sign-ins to an account from which on further ones have to wait; separate for unknown callers, for each "
        "browser and for each address with which the account was signed in to before.",
        minimum=1,
    ),
    integer(
        _P + "FailuresPerAddress",
        50,
        "Failed sign-ins from an address, or from an IPv6 network /64, from which on further ones have to wait.",
        minimum=1,
    ),
    interval(_P + "Delay", "1 second", "Time to wait after these failures; doubled by each further one."),
    interval(_P + "LongestDelay", "15 minutes", "Longest time to wait."),
    interval(_P + "ResetAfter", "1 hour", "Time without an attempt after which failures are forgotten."),
    texts(
        _P + "AccountParameterNameContains",
        ("user", "name", "mail", "login", "account"),
        "The first parameter of a login whose name contains one of these texts is the account; without one, the first "
        "that is not the password.",
    ),
    text(_P + "CookieName", "rowcall-known-browser", "Cookie by which a browser that has signed in before is known."),
    interval(_P + "KnownFor", "90 days", "Time for which a browser and an address are known after a sign-in."),
    text(
        _P + "RedisConfiguration",
        None,
        "Redis that counts for several hosts together, in the format of CacheOptions; these hosts have to share a key "
        "ring. null: each host counts separately.",
        secret=True,
    ),
)
