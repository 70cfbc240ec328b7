"""Options of downloads."""

from __future__ import annotations

import enum

from rowcall.core.sections.declaration import choice, flag, integer, interval, section, text, texts


class SendFile(enum.Enum):
    """Header with which a reverse proxy is instructed to send a file itself."""

    NGINX = "X-Accel-Redirect"
    APACHE = "X-Sendfile"


def _whole_seconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds))


@section("Downloads", "Files that endpoints with `download` send.")
class DownloadOptions:
    folders: tuple[str, ...] = texts(
        "Folders",
        (),
        "Folders with the files that a column `file` may name. Empty: the folder of uploads (`FileSystemPath`).",
    )
    active: bool = flag(
        "ActiveContent",
        False,
        "Show types that can run scripts, such as HTML and SVG, in the browser where the comment says `inline`, "
        "instead of sending them as attachments.",
    )
    largest: int = integer(
        "LargestContent", 33_554_432, "Most bytes of a value of a column `content`; larger ones are 500."
    )
    send_file: SendFile | None = choice(
        "SendFile",
        SendFile,
        None,
        "Header with which the reverse proxy in front, nginx or Apache, sends the files of folders itself. null: "
        "the service sends them.",
    )
    location: str = text(
        "SendFileLocation",
        "/files",
        "Internal location of nginx for the first of the folders; `/files-2` and so on for the others.",
    )
    link_seconds: int | None = interval(
        "ObjectLinks",
        None,
        "Redirect clients to an address of the object store that is valid for this time, instead of sending "
        "objects from here.",
        convert=_whole_seconds,
    )
