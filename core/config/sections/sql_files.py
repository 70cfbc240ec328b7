"""Keys of SQL files as endpoints."""

from __future__ import annotations

from rowcall.core.sections.declaration import choice, flag, section, text


@section("Service:SqlFileSource", "SQL files as endpoints.")
class SqlFileSource:
    enabled = flag("Enabled", False, "Serve SQL files.")
    file_pattern = text("FilePattern", "", "Pattern of the files. An empty text matches none.")
    skip_pattern = text("SkipPattern", "*.test.sql", "Pattern of files to leave out. An empty text: none.")
    comments_mode = choice(
        "CommentsMode",
        "Ignore ParseAll OnlyAnnotated OnlyWithHttpTag",
        "OnlyAnnotated",
        "Which files become endpoints; the values have the same meaning as in Service:CommentsMode.",
    )
    comment_scope = choice(
        "CommentScope", "All Header", "All", "Which comments are read: all, or those before the first statement."
    )
    error_mode = choice(
        "ErrorMode", "Exit Skip", "Exit", "Consequence of an invalid file: no start, or it is left out."
    )
    result_prefix = text("ResultPrefix", "result", "Prefix of keys if several statements return results.")
    unnamed_single_column_set = flag("UnnamedSingleColumnSet", True, "Return a set with one column as a plain array.")
    nested_json_for_composite_types = flag(
        "NestedJsonForCompositeTypes", False, "Keep a composite column as one nested object."
    )
    skip_non_query_commands = flag("SkipNonQueryCommands", True, "Leave out statements that return no rows.")
    log_command_text = flag("LogCommandText", False, "Log the whole text of files with several statements.")
