"""Keys of the second factor."""

from rowcall.core.sections.keys import Key, flag, integer, interval, section, text

_P = "Auth:SecondFactor:"

ROWS: tuple[Key, ...] = (
    section("Auth:SecondFactor", "Second factor: one-time codes of an authenticator app, recovery codes, passkeys."),
    flag(_P + "Enabled", False, "Ask users who have set up a second factor for it at every login."),
    text(_P + "Path", "/api/second-factor", "Path of the endpoints with which users set up and prove a second factor."),
    text(_P + "Issuer", None, "Name of the application that an authenticator app shows. null: ApplicationName."),
    interval(_P + "Pending", "5 minutes", "Time from the first factor to the second."),
    integer(_P + "Drift", 1, "Steps of 30 seconds by which the clock of a phone may be early or late.", maximum=10),
    integer(_P + "RecoveryCodes", 10, "Number of recovery codes of a user.", minimum=1, maximum=100),
    integer(
        _P + "Attempts",
        5,
        "Wrong codes in a row after which a user has to wait: a second, and twice as long after each further one, up "
        "to an hour.",
        minimum=1,
        maximum=20,
    ),
    interval(
        _P + "RememberDevice",
        None,
        "Time for which a browser need not prove the second factor again, if its user wishes so. null: never.",
    ),
    text(_P + "DeviceCookie", "rowcall-device", "Name of the cookie that remembers a browser."),
    interval(
        _P + "EnrolWithin",
        None,
        "Longest time since the sign-in of a user who sets up, replaces or removes a second factor. null: no limit.",
    ),
    text(_P + "RateLimiterPolicy", None, "Rate limit of all these paths."),
)
