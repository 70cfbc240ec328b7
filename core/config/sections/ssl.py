"""Keys of redirects to https and of Strict-Transport-Security. Certificates are configured in the HTTP server
section."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, integer, section


@section("Ssl", "HTTPS. Certificates are configured in `HttpServer:Certificates` or with an endpoint of `HttpServer`.")
class Ssl:
    enabled: bool = flag(
        "Enabled", False, "Enable UseHttpsRedirection and UseHsts. HTTP Basic then regards connections as secure."
    )
    redirects: bool = flag("UseHttpsRedirection", True, "Respond to http requests with a 307 to https, if Ssl:Enabled.")
    port: int | None = integer(
        "HttpsPort",
        None,
        "Port of the redirect, such as that of a reverse proxy. null: port of the first https address.",
        minimum=1,
        maximum=65_535,
    )
    hsts: bool = flag(
        "UseHsts", True, "Send Strict-Transport-Security over https to hosts other than the local one, if Ssl:Enabled."
    )
