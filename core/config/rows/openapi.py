"""Keys of the OpenAPI document."""

from rowcall.core.sections.keys import Key, choice, flag, objects, section, text, texts

_P = "Service:OpenApiOptions:"
_SERVER = _P + "Servers:[]:"
_SCHEME = _P + "SecuritySchemes:[]:"

ROWS: tuple[Key, ...] = (
    section("Service:OpenApiOptions", "The OpenAPI document."),
    flag(_P + "Enabled", False, "Create the document."),
    text(_P + "FileName", "rowcall_openapi.json", "File of the document. null: none.", nullable=True),
    text(_P + "UrlPath", "/openapi.json", "Path of the document. null: not served.", nullable=True),
    flag(_P + "FileOverwrite", True, "Write over a file that exists."),
    text(_P + "DocumentTitle", None, "Title. null: name of the database."),
    text(_P + "DocumentVersion", "1.0.0", "Version of the document."),
    text(_P + "DocumentDescription", None, "Description."),
    text(_P + "SpecVersion", "3.0", "OpenAPI version: 3.0 or 3.1."),
    flag(_P + "AddCurrentServer", True, "Include the address of this service in the servers."),
    objects(_P + "Servers", (), "Additional servers."),
    text(_SERVER + "Url", None, "Address. An entry without one is left out."),
    text(_SERVER + "Description", None, "Description of the server."),
    objects(_P + "SecuritySchemes", (), "Security schemes. An empty list describes those in use."),
    text(_SCHEME + "Name", None, "Name of the scheme."),
    choice(_SCHEME + "Type", "Http ApiKey", None, "Kind of the scheme."),
    text(_SCHEME + "Description", None, "Description of the scheme."),
    choice(_SCHEME + "Scheme", "Basic Bearer", None, "HTTP scheme, for Http."),
    text(_SCHEME + "BearerFormat", None, "Format of bearer tokens."),
    text(_SCHEME + "In", None, "Name of the header, query key or cookie, for ApiKey."),
    choice(_SCHEME + "ApiKeyLocation", "Header Query Cookie", None, "Place of the API key."),
    texts(_P + "IncludeSchemas", (), "Only these schemas. An empty list is all."),
    texts(_P + "ExcludeSchemas", (), "Not these schemas."),
    text(_P + "NameSimilarTo", None, "Only routines SIMILAR TO this pattern."),
    text(_P + "NameNotSimilarTo", None, "No routines SIMILAR TO this pattern."),
    flag(_P + "RequiresAuthorizationOnly", False, "Only endpoints that need a signed-in user."),
    flag(
        _P + "OmitAutomaticParameters",
        True,
        "Leave out parameters that the service sets itself: claims, address, hashes, SQL.",
    ),
)
