"""Keys of metrics and of the admin listener that serves them; public listeners never do (issue 22)."""

from rowcall.core.config.keys import Key, choice, flag, integer, section, text

_A = "Admin:"
_M = "Metrics:"

ROWS: tuple[Key, ...] = (
    section("Admin", "A listener for operators, apart from the public ones. It answers for all workers together."),
    text(
        _A + "Url",
        None,
        "Its address: http://127.0.0.1:9464, or http://unix:/run/rowcall-admin.sock, which only the owner may open. "
        "Without one there is none.",
    ),
    text(_A + "BearerToken", None, "What requests have to carry behind Authorization: Bearer.", secret=True),
    flag(_A + "AllowAnonymous", False, "Start without a token on an address that other machines reach, and warn."),
    section("Metrics", "Numbers for Prometheus and its like, in its text format or as OpenMetrics."),
    flag(_M + "Enabled", False, "Count requests, and give the numbers on the admin listener."),
    text(_M + "Path", "/metrics", "Where on that listener."),
    integer(_M + "MaxEndpoints", 2000, "Endpoints that are told apart; the rest is counted together."),
    flag(
        _M + "MeasureRendering", False, "Take the time of turning rows into bodies: two looks at the clock for a row."
    ),
    section("Profiling", "Profiles of running workers: SIGUSR1, or POST /profile on the admin listener."),
    text("Profiling:Folder", None, "Where they are written. Without one each has a new folder of temporary files."),
    choice("Profiling:Sampler", "Auto BuiltIn", "Auto", "Auto takes py-spy where it is installed and may look."),
)
