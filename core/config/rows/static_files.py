"""Keys of static files and of the placeholders in them."""

from rowcall.core.config.keys import Key, flag, names, section, text, texts

_P = "StaticFiles:"
_PARSE = "StaticFiles:ParseContentOptions:"

ROWS: tuple[Key, ...] = (
    section("StaticFiles", "Files served beside the endpoints."),
    flag(_P + "Enabled", False, "Serve files."),
    text(_P + "RootPath", "wwwroot", "Folder they are in."),
    texts(_P + "AuthorizePaths", (), "Patterns of paths for signed-in users only."),
    text(
        _P + "UnauthorizedRedirectPath",
        "/",
        "Where others are sent. null or an empty text answers 401.",
        nullable=True,
    ),
    text(
        _P + "UnauthorizedReturnToQueryParameter",
        "return_to",
        "Query key that tells that page the path asked for. null or an empty text leaves it out.",
        nullable=True,
    ),
    text(_P + "CacheControl", None, "Cache-Control of files that nothing is filled into. null sends none."),
    section(_P + "ParseContentOptions", "Values put into files as they are served."),
    flag(_PARSE + "Enabled", False, "Fill in `{name}` in files."),
    names(
        _PARSE + "AvailableClaims",
        "Claims that are filled in for everybody. One a caller lacks is null, or the text given with its name.",
    ),
    names(
        _PARSE + "AvailableEnvVars",
        "Environment variables that are filled in as JSON texts. An unset one is empty, or the text given.",
    ),
    flag(_PARSE + "CacheParsedFile", True, "Keep such files in memory as they were read."),
    texts(
        _PARSE + "Headers",
        ("Cache-Control: no-store, no-cache, must-revalidate", "Pragma: no-cache", "Expires: 0"),
        "`Name: value` headers of such files.",
    ),
    texts(_PARSE + "FilePaths", ("*.html",), "Patterns of files that are filled in."),
    text(
        _PARSE + "AntiforgeryFieldName",
        "antiForgeryFieldName",
        "Name that stands for the anti-forgery form field.",
        nullable=True,
    ),
    text(
        _PARSE + "AntiforgeryToken",
        "antiForgeryToken",
        "Name that stands for the anti-forgery token.",
        nullable=True,
    ),
)
