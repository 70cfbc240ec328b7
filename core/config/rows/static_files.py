"""Keys of static files and of the placeholders in them."""

from rowcall.core.sections.keys import Key, flag, names, section, text, texts

_P = "StaticFiles:"
_PARSE = "StaticFiles:ParseContentOptions:"

ROWS: tuple[Key, ...] = (
    section("StaticFiles", "Files served beside the endpoints."),
    flag(_P + "Enabled", False, "Serve files."),
    text(_P + "RootPath", "wwwroot", "Folder of the files."),
    texts(_P + "AuthorizePaths", (), "Patterns of paths for signed-in users only."),
    text(
        _P + "UnauthorizedRedirectPath",
        "/",
        "Path to which anonymous callers are redirected. null or an empty text: 401.",
        nullable=True,
    ),
    text(
        _P + "UnauthorizedReturnToQueryParameter",
        "return_to",
        "Query key of the redirect that receives the requested path. null or an empty text: none.",
        nullable=True,
    ),
    text(_P + "CacheControl", None, "Cache-Control of files without placeholders. null: not sent."),
    section(_P + "ParseContentOptions", "Placeholders in files, which are replaced for each request."),
    flag(_PARSE + "Enabled", False, "Replace `{name}` in files."),
    names(
        _PARSE + "AvailableClaims",
        "Claims that placeholders may name. A claim that the caller lacks is null, or has the text configured with its "
        "name.",
    ),
    names(
        _PARSE + "AvailableEnvVars",
        "Environment variables that placeholders may name, as JSON strings. An unset one is empty, or has the "
        "configured text.",
    ),
    flag(_PARSE + "CacheParsedFile", True, "Cache the content of such files in memory."),
    texts(
        _PARSE + "Headers",
        ("Cache-Control: no-store, no-cache, must-revalidate", "Pragma: no-cache", "Expires: 0"),
        "`Name: value` headers of such files.",
    ),
    texts(_PARSE + "FilePaths", ("*.html",), "Patterns of files with placeholders."),
    text(
        _PARSE + "AntiforgeryFieldName",
        "antiForgeryFieldName",
        "Placeholder of the name of the antiforgery form field.",
        nullable=True,
    ),
    text(
        _PARSE + "AntiforgeryToken",
        "antiForgeryToken",
        "Placeholder of the antiforgery token.",
        nullable=True,
    ),
)
