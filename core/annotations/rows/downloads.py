"""Annotation about downloads: download."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line
from rowcall.core.endpoint.capabilities import Download


def _download(draft: Draft, line: Line) -> None:
    _assign_download(draft, line.joined)


def _assign_download(draft: Draft, value: str) -> None:
    word = value.strip().lower() or "attachment"
    if word not in ("attachment", "inline"):
        raise BadValueError(f"'{value}' is none of attachment, inline")
    draft.set(download=Download(inline=word == "inline"))


ANNOTATIONS = (
    Annotation(
        name="download",
        aliases=("download",),
        syntax="download [attachment|inline]",
        description="The row of the routine is a file: its column `content`, `file`, `oid` or `object` has the bytes "
        "or says where they are, and `name`, `type`, `modified` and `etag` describe them. Ranges and validators are "
        "handled. `inline` shows types without scripts in the browser.",
        apply=_download,
        assign=_assign_download,
        maximum_words=2,
    ),
)
