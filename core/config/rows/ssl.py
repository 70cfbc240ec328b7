"""Keys of HTTPS. Certificates are configured in the HTTP server section."""

from rowcall.core.config.keys import Key, flag, integer, section

ROWS: tuple[Key, ...] = (
    section("Ssl", "HTTPS. Certificates are given in `HttpServer:Certificates` or with an endpoint of `HttpServer`."),
    flag(
        "Ssl:Enabled",
        False,
        "Send clients to https, as the two keys below say. Basic authentication counts the connection as safe then.",
    ),
    flag("Ssl:UseHttpsRedirection", True, "Answer http requests with a 307 to https, when Ssl:Enabled."),
    integer(
        "Ssl:HttpsPort",
        None,
        "Port that clients are sent to, such as that of a proxy in front. null is that of the first https address.",
        nullable=True,
        maximum=65535,
    ),
    flag(
        "Ssl:UseHsts",
        True,
        "Send Strict-Transport-Security over https to hosts other than the local one, when Ssl:Enabled.",
    ),
)
