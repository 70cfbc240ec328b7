"""Keys of CORS: which origins may call."""

from rowcall.core.sections.keys import Key, flag, integer, section, texts

ROWS: tuple[Key, ...] = (
    section("Cors", "Calls from pages of other origins."),
    flag("Cors:Enabled", False, "Allow calls from other origins, and answer their preflights."),
    texts("Cors:AllowedOrigins", (), "Origins that may call; `*` is any."),
    texts("Cors:AllowedMethods", ("*",), "Methods that pages may use; `*` is any."),
    texts("Cors:AllowedHeaders", ("*",), "Request headers that pages may send; `*` is any."),
    texts("Cors:ExposedHeaders", (), "Response headers that pages may read in addition to the safelisted ones."),
    flag("Cors:AllowCredentials", False, "Let pages send credentials such as cookies."),
    integer(
        "Cors:PreflightMaxAgeSeconds", 600, "Seconds for which a browser may cache a preflight. 0 or less: not sent."
    ),
)
