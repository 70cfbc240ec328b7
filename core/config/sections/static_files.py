"""Keys of static files and of the placeholders in them."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, names, part, section, text, texts


@section("StaticFiles:ParseContentOptions", "Placeholders in files, which are replaced for each request.")
class ParseContentOptions:
    enabled = flag("Enabled", False, "Replace `{name}` in files.")
    available_claims = names(
        "AvailableClaims",
        "Claims that placeholders may name. A claim that the caller lacks is null, or has the text configured "
        "with its name.",
    )
    available_env_vars = names(
        "AvailableEnvVars",
        "Environment variables that placeholders may name, as JSON strings. An unset one is empty, or has the "
        "configured text.",
    )
    cache_parsed_file = flag("CacheParsedFile", True, "Cache the content of such files in memory.")
    headers = texts(
        "Headers",
        (
            "Cache-Control: no-store, no-cache, must-revalidate",
            "Pragma: no-cache",
            "Expires: 0",
        ),
        "`Name: value` headers of such files.",
    )
    file_paths = texts("FilePaths", ("*.html",), "Patterns of files with placeholders.")
    antiforgery_field_name = text(
        "AntiforgeryFieldName",
        "antiForgeryFieldName",
        "Placeholder of the name of the antiforgery form field.",
        nullable=True,
    )
    antiforgery_token = text(
        "AntiforgeryToken", "antiForgeryToken", "Placeholder of the antiforgery token.", nullable=True
    )


@section("StaticFiles", "Files served beside the endpoints.")
class StaticFiles:
    enabled = flag("Enabled", False, "Serve files.")
    root_path = text("RootPath", "wwwroot", "Folder of the files.")
    authorize_paths = texts("AuthorizePaths", (), "Patterns of paths for signed-in users only.")
    unauthorized_redirect_path = text(
        "UnauthorizedRedirectPath",
        "/",
        "Path to which anonymous callers are redirected. null or an empty text: 401.",
        nullable=True,
    )
    unauthorized_return_to_query_parameter = text(
        "UnauthorizedReturnToQueryParameter",
        "return_to",
        "Query key of the redirect that receives the requested path. null or an empty text: none.",
        nullable=True,
    )
    cache_control = text("CacheControl", None, "Cache-Control of files without placeholders. null: not sent.")
    pages = part(ParseContentOptions)
