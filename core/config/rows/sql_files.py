"""Keys of SQL files as endpoints."""

from rowcall.core.sections.keys import Key, choice, flag, section, text

_P = "Service:SqlFileSource:"

ROWS: tuple[Key, ...] = (
    section("Service:SqlFileSource", "SQL files as endpoints."),
    flag(_P + "Enabled", False, "Serve SQL files."),
    text(_P + "FilePattern", "", "Pattern of the files. An empty text matches none."),
    text(_P + "SkipPattern", "*.test.sql", "Pattern of files to leave out. An empty text: none."),
    choice(
        _P + "CommentsMode",
        "Ignore ParseAll OnlyAnnotated OnlyWithHttpTag",
        "OnlyAnnotated",
        "Which files become endpoints; the values have the same meaning as in Service:CommentsMode.",
    ),
    choice(
        _P + "CommentScope", "All Header", "All", "Which comments are read: all, or those before the first statement."
    ),
    choice(_P + "ErrorMode", "Exit Skip", "Exit", "Consequence of an invalid file: no start, or it is left out."),
    text(_P + "ResultPrefix", "result", "Prefix of keys if several statements return results."),
    flag(_P + "UnnamedSingleColumnSet", True, "Return a set with one column as a plain array."),
    flag(_P + "NestedJsonForCompositeTypes", False, "Keep a composite column as one nested object."),
    flag(_P + "SkipNonQueryCommands", True, "Leave out statements that return no rows."),
    flag(_P + "LogCommandText", False, "Log the whole text of files with several statements."),
)
