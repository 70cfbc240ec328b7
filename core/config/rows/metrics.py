"""Keys of metrics and of the admin listener that serves them; public listeners never do (issue 22)."""

from rowcall.core.sections.keys import Key, choice, flag, integer, section, text

_A = "Admin:"
_M = "Metrics:"

ROWS: tuple[Key, ...] = (
    section("Admin", "A listener for operators, separate from the public ones. It reports on all workers together."),
    text(
        _A + "Url",
        None,
        "Address, such as http://127.0.0.1:9464, or http://unix:/run/rowcall-admin.sock, which only the owner may "
        "open. null: no admin listener.",
    ),
    text(_A + "BearerToken", None, "Token that requests have to send in `Authorization: Bearer`.", secret=True),
    flag(
        _A + "AllowAnonymous", False, "Allow an address that other machines can reach without a token, with a warning."
    ),
    section("Metrics", "Metrics for Prometheus, in its text format or as OpenMetrics."),
    flag(_M + "Enabled", False, "Record metrics, and serve them on the admin listener."),
    text(_M + "Path", "/metrics", "Path on the admin listener."),
    integer(
        _M + "MaxEndpoints",
        2000,
        "Maximum number of endpoints with separate values; further ones are counted together.",
        minimum=2,
    ),
    flag(_M + "MeasureRendering", False, "Measure the rendering of rows, which reads the clock twice for each row."),
    section("Profiling", "Profiles of running workers: SIGUSR1, or POST /profile on the admin listener."),
    text("Profiling:Folder", None, "Folder of profiles. null: a new temporary folder for each profile."),
    choice("Profiling:Sampler", "Auto BuiltIn", "Auto", "Auto: py-spy if it is installed and permitted, else BuiltIn."),
)
