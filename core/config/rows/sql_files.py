"""Keys of SQL files as endpoints."""

from rowcall.core.config.keys import Key, choice, flag, section, text

_P = "Service:SqlFileSource:"

ROWS: tuple[Key, ...] = (
    section("Service:SqlFileSource", "Files of SQL as endpoints."),
    flag(_P + "Enabled", False, "Serve them."),
    text(_P + "FilePattern", "", "Pattern of the files. An empty text finds none."),
    text(_P + "SkipPattern", "*.test.sql", "Pattern of files to leave out. An empty text leaves out none."),
    choice(
        _P + "CommentsMode",
        "Ignore ParseAll OnlyAnnotated OnlyWithHttpTag",
        "OnlyAnnotated",
        "Which files become endpoints; the words mean what they mean in Service:CommentsMode.",
    ),
    choice(
        _P + "CommentScope", "All Header", "All", "Which comments are read: all, or those before the first statement."
    ),
    choice(_P + "ErrorMode", "Exit Skip", "Exit", "A bad file stops the start, or is left out."),
    text(_P + "ResultPrefix", "result", "What keys begin with when several statements give results."),
    flag(_P + "UnnamedSingleColumnSet", True, "Give a set with one column as a plain array."),
    flag(_P + "NestedJsonForCompositeTypes", False, "Keep a composite column as one nested object."),
    flag(_P + "SkipNonQueryCommands", True, "Leave out statements that give no rows."),
    flag(_P + "LogCommandText", False, "Log the whole text of files with several statements."),
)
