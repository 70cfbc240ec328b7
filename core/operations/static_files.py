"""Options of static files, their protection and their placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.endpoint.access import ANYONE, SIGNED_IN, Access
from rowcall.core.sections.declaration import flag, names, part, section, text, texts
from rowcall.core.text.globs import matches


def _patterns(texts: tuple[str, ...]) -> tuple[str, ...]:
    patterns = tuple(filter(None, texts))
    for pattern in patterns:
        if not pattern.startswith(("/", "*", "?")):
            raise ValueError(f"{pattern!r} matches no path: paths of files begin with a slash, such as /{pattern}")
    return patterns


@section("StaticFiles:ParseContentOptions")
class AntiforgeryTags:
    """Placeholders of antiforgery."""

    field: str | None = text(
        "AntiforgeryFieldName",
        "antiForgeryFieldName",
        "Placeholder of the name of the antiforgery form field.",
        nullable=True,
    )
    token: str | None = text(
        "AntiforgeryToken", "antiForgeryToken", "Placeholder of the antiforgery token.", nullable=True
    )


@section("StaticFiles:ParseContentOptions", "Placeholders in files, which are replaced for each request.")
class PageOptions:
    """Options of pages with placeholders.

    claims: claim type → text that replaces its placeholder if the caller lacks the claim; None: `null`. variables: name
    of an environment variable → text that replaces its placeholder; None: an empty text. The configuration has the
    texts for unset variables; the values of set variables replace them before files are served. keep: cache the content
    of files. patterns: of URL paths.
    """

    enabled: bool = flag("Enabled", False, "Replace `{name}` in files.")
    claims: Mapping[str, str | None] = names(
        "AvailableClaims",
        "Claims that placeholders may name. A claim that the caller lacks is null, or has the text configured "
        "with its name.",
    )
    variables: Mapping[str, str | None] = names(
        "AvailableEnvVars",
        "Environment variables that placeholders may name, as JSON strings. An unset one is empty, or has the "
        "configured text.",
    )
    keep: bool = flag("CacheParsedFile", True, "Cache the content of such files in memory.")
    header_lines: tuple[str, ...] = texts(
        "Headers",
        ("Cache-Control: no-store, no-cache, must-revalidate", "Pragma: no-cache", "Expires: 0"),
        "`Name: value` headers of such files.",
    )
    patterns: tuple[str, ...] = texts("FilePaths", ("*.html",), "Patterns of files with placeholders.")
    antiforgery = part(AntiforgeryTags)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Names in lower case and values of the headers. Lines without a name, or with another number of colons than
        one, are left out."""
        parts = (line.split(":") for line in self.header_lines)
        return tuple((part[0].strip().lower(), part[1].strip()) for part in parts if len(part) == 2 and part[0].strip())


@section("StaticFiles", "Files served beside the endpoints.")
class StaticFileOptions:
    """Options of static files.

    root: folder of the files; resolved to an absolute path without symbolic links before files are served. closed:
    patterns of URL paths that only signed-in users may read. pages: None: placeholders are not replaced.
    """

    enabled: bool = flag("Enabled", False, "Serve files.")
    root: str = text("RootPath", "wwwroot", "Folder of the files.")
    closed: tuple[str, ...] = texts(
        "AuthorizePaths", (), "Patterns of paths for signed-in users only.", convert=_patterns
    )
    redirect: str | None = text(
        "UnauthorizedRedirectPath",
        "/",
        "Path to which anonymous callers are redirected. null or an empty text: 401.",
        nullable=True,
    )
    return_to: str | None = text(
        "UnauthorizedReturnToQueryParameter",
        "return_to",
        "Query key of the redirect that receives the requested path. null or an empty text: none.",
        nullable=True,
    )
    cache_control: str | None = text(
        "CacheControl", None, "Cache-Control of files without placeholders. null: not sent."
    )
    page_keys = part(PageOptions)
    pages: PageOptions | None = None
    names: tuple[str, str, str] = ("user_id", "user_name", "user_roles")
    """Claim types of user id, user name and roles."""

    def access(self, path: str) -> Access:
        """Return who may read the file at a URL path."""
        return SIGNED_IN if any(matches(path, pattern) for pattern in self.closed) else ANYONE
