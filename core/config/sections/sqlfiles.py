"""Options of endpoints from SQL files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.core.endpoint.capabilities import CommentsMode, comments_mode_of
from rowcall.core.sections.declaration import choice, flag, part, section, text
from rowcall.core.sections.values import or_empty
from rowcall.core.text.globs import base_folder

if TYPE_CHECKING:
    from rowcall.core.building.endpoint_builder import EndpointDefaults


def _pattern(text: str) -> str:
    return text.strip().replace("\\", "/")


def _is_all(word: str) -> bool:
    return word == "All"


def _is_exit(word: str) -> bool:
    return word == "Exit"


@section("Service:SqlFileSource")
class SqlFileLog:
    log_texts: bool = flag("LogCommandText", False, "Log the whole text of files with several statements.")


@section("Service:SqlFileSource", "SQL files as endpoints.")
class SqlFileOptions:
    """Options of SQL files.

    pattern, skip: globs of the files that are served and of those that are left out. whole: comments anywhere in a file
    are read; otherwise only those before the end of the first statement. strict: an invalid file prevents the start;
    otherwise it is left out. prefix: of keys if several statements return results. unnamed: a set with one column is a
    plain array. nested: a composite column stays one object. hide: statements without a result are left out of the
    response.
    """

    enabled: bool = flag("Enabled", False, "Serve SQL files.")
    pattern: str = text("FilePattern", "", "Pattern of the files. An empty text matches none.", convert=_pattern)
    skip: str = text(
        "SkipPattern", "*.test.sql", "Pattern of files to leave out. An empty text: none.", empty=True, convert=or_empty
    )
    comments_mode: CommentsMode = choice(
        "CommentsMode",
        "Ignore ParseAll OnlyAnnotated OnlyWithHttpTag",
        "OnlyAnnotated",
        "Which files become endpoints; the values have the same meaning as in Service:CommentsMode.",
        convert=comments_mode_of,
    )
    whole: bool = choice(
        "CommentScope",
        "All Header",
        "All",
        "Which comments are read: all, or those before the end of the first statement. Annotations of single "
        "statements (`result`, `skip`, `single`, `returns`) are read in all.",
        convert=_is_all,
    )
    strict: bool = choice(
        "ErrorMode",
        "Exit Skip",
        "Exit",
        "Consequence of an invalid file: no start, or it is left out.",
        convert=_is_exit,
    )
    prefix: str = text(
        "ResultPrefix", "result", "Prefix of keys if several statements return results.", empty=True, convert=or_empty
    )
    unnamed: bool = flag("UnnamedSingleColumnSet", True, "Return a set with one column as a plain array.")
    nested: bool = flag("NestedJsonForCompositeTypes", False, "Keep a composite column as one nested object.")
    hide: bool = flag("SkipNonQueryCommands", True, "Leave out statements that return no rows.")
    log = part(SqlFileLog)
    wrapped: bool = False
    """The statements of a file run in one transaction."""
    keywords: frozenset[str] = frozenset()
    """Annotations besides `http` that make a file an endpoint."""

    @property
    def folder(self) -> str:
        """Folder before the first wildcard of the pattern, which contains all files; `.` without a folder."""
        return base_folder(self.pattern)

    def defaults(self, defaults: EndpointDefaults) -> EndpointDefaults:
        """Return the endpoint defaults for SQL files, derived from those for routines."""
        return defaults.of_source(self.comments_mode, nested=self.nested)
