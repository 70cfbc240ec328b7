"""Keys of CORS: which origins may call."""

from rowcall.core.config.keys import Key, flag, integer, section, texts

ROWS: tuple[Key, ...] = (
    section("Cors", "Calls from pages of other origins."),
    flag("Cors:Enabled", False, "Answer such calls and their preflights."),
    texts("Cors:AllowedOrigins", (), "Origins that may call; `*` is any."),
    texts("Cors:AllowedMethods", ("*",), "Methods they may use; `*` is any."),
    texts("Cors:AllowedHeaders", ("*",), "Request headers they may send; `*` is any."),
    texts("Cors:ExposedHeaders", (), "Headers of answers that they may read besides those that all may."),
    flag("Cors:AllowCredentials", False, "Let them send cookies and the like."),
    integer("Cors:PreflightMaxAgeSeconds", 600, "Seconds a browser may remember a preflight. 0 or less says nothing."),
)
