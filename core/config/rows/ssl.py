"""Keys of HTTPS. Certificates are configured in the HTTP server section."""

from rowcall.core.sections.keys import Key, flag, integer, section

ROWS: tuple[Key, ...] = (
    section(
        "Ssl", "HTTPS. Certificates are configured in `HttpServer:Certificates` or with an endpoint of `HttpServer`."
    ),
    flag(
        "Ssl:Enabled",
        False,
        "Enable UseHttpsRedirection and UseHsts. HTTP Basic then regards connections as secure.",
    ),
    flag("Ssl:UseHttpsRedirection", True, "Respond to http requests with a 307 to https, if Ssl:Enabled."),
    integer(
        "Ssl:HttpsPort",
        None,
        "Port of the redirect, such as that of a reverse proxy. null: port of the first https address.",
        nullable=True,
        minimum=1,
        maximum=65535,
    ),
    flag(
        "Ssl:UseHsts",
        True,
        "Send Strict-Transport-Security over https to hosts other than the local one, if Ssl:Enabled.",
    ),
)
