"""Options of metrics, of the admin listener that serves them, and of profiles."""

from __future__ import annotations

from rowcall.core.sections.declaration import choice, flag, integer, section, text


def _is_auto(word: str) -> bool:
    return word == "Auto"


@section("Admin", "A listener for operators, separate from the public ones. It reports on all workers together.")
class Admin:
    url: str | None = text(
        "Url",
        None,
        "Address, such as http://127.0.0.1:9464, or http://unix:/run/rowcall-admin.sock, which only the owner "
        "may open. null: no admin listener.",
    )
    bearer_token: str | None = text(
        "BearerToken", None, "Token that requests have to send in `Authorization: Bearer`.", secret=True
    )
    allow_anonymous: bool = flag(
        "AllowAnonymous", False, "Allow an address that other machines can reach without a token, with a warning."
    )


@section("Metrics", "Metrics for Prometheus, in its text format or as OpenMetrics.")
class MetricsOptions:
    """Options of the metrics that workers record."""

    enabled: bool = flag("Enabled", False, "Record metrics, and serve them on the admin listener.")
    path: str = text("Path", "/metrics", "Path on the admin listener.")
    most: int = integer(
        "MaxEndpoints",
        2000,
        "Maximum number of endpoints with separate values; further ones are counted together.",
        minimum=2,
    )
    rendering: bool = flag(
        "MeasureRendering", False, "Measure the rendering of rows, which reads the clock twice for each row."
    )


@section("Profiling", "Profiles of running workers: SIGUSR1, or POST /profile on the admin listener.")
class ProfilingOptions:
    """Options of profiling."""

    folder: str | None = text("Folder", None, "Folder of profiles. null: a new temporary folder for each profile.")
    py_spy: bool = choice(
        "Sampler",
        "Auto BuiltIn",
        "Auto",
        "Auto: py-spy if it is installed and permitted, else BuiltIn.",
        convert=_is_auto,
    )
