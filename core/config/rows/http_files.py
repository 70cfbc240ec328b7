"""Keys of files with example requests (`.http`)."""

from rowcall.core.sections.keys import Key, choice, flag, section, text

_P = "Service:HttpFileOptions:"

ROWS: tuple[Key, ...] = (
    section("Service:HttpFileOptions", "Files of example requests, for editors that can send them."),
    flag(_P + "Enabled", False, "Create the files."),
    choice(_P + "Option", "Disabled File Endpoint Both", "File", "Write files, serve them, or both."),
    text(_P + "Name", None, "Name of the files. null: name of the database."),
    text(_P + "NamePattern", "{0}_{1}", "Pattern of file names: {0} the name, {1} the schema."),
    choice(_P + "CommentHeader", "None Simple Full", "Simple", "Comment above a request."),
    flag(_P + "CommentHeaderIncludeComments", True, "Include the text of the routine's comment."),
    choice(_P + "FileMode", "Database Schema", "Schema", "One file, or one for each schema."),
    flag(_P + "FileOverwrite", True, "Write over files that exist."),
    flag(
        _P + "OmitAutomaticParameters",
        True,
        "Leave out parameters that the service sets itself: claims, address, hashes, SQL.",
    ),
)
