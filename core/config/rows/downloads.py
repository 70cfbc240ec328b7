"""Keys of downloads: files that rows of routines name."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, section, text, texts

ROWS: tuple[Key, ...] = (
    section("Downloads", "Files that endpoints with `download` send."),
    texts(
        "Downloads:Folders",
        (),
        "Folders with the files that a column `file` may name. Empty: the folder of uploads (`FileSystemPath`).",
    ),
    flag(
        "Downloads:ActiveContent",
        False,
        "Show types that can run scripts, such as HTML and SVG, in the browser where the comment says `inline`, "
        "instead of sending them as attachments.",
    ),
    integer(
        "Downloads:LargestContent", 33_554_432, "Most bytes of a value of a column `content`; larger ones are 500."
    ),
    choice(
        "Downloads:SendFile",
        "X-Accel-Redirect X-Sendfile",
        None,
        "Header with which the reverse proxy in front, nginx or Apache, sends the files of folders itself. null: the "
        "service sends them.",
    ),
    text(
        "Downloads:SendFileLocation",
        "/files",
        "Internal location of nginx for the first of the folders; `/files-2` and so on for the others.",
    ),
    interval(
        "Downloads:ObjectLinks",
        None,
        "Redirect clients to an address of the object store that is valid for this time, instead of sending objects "
        "from here.",
    ),
)
