"""Annotation about downloads: download."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, keyword_form, split_at_word
from rowcall.core.endpoint.capabilities import Download
from rowcall.core.text.interval import parse_interval


def _assign_download(draft: Draft, value: str) -> None:
    """Apply `inline link 10 minutes`. An empty text means `attachment`, without links. Raises `BadValueError` for
    another form."""
    before, interval = split_at_word(value, "link")
    word = before.strip().lower() or "attachment"
    seconds = None if interval is None else parse_interval(interval)
    if word not in ("attachment", "inline") or (interval is not None and not seconds):
        raise BadValueError(f"'{value}' is none of: attachment, inline, inline link 10 minutes")
    draft.set(download=Download(inline=word == "inline", link_seconds=seconds))


ANNOTATIONS = (
    Annotation(
        name="download",
        aliases=("download",),
        syntax="download [attachment|inline] [link <interval>]",
        description="The row of the routine is a file: its column `content`, `file`, `oid` or `object` has the bytes "
        "or says where they are, and `name`, `type`, `modified` and `etag` describe them. Ranges and validators are "
        "handled. `inline` shows types without scripts in the browser; with `link`, `?link` returns an address with "
        "which any client gets the file for a time.",
        apply=keyword_form(_assign_download),
        assign=_assign_download,
    ),
)
