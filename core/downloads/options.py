"""Options of downloads."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class SendFile(enum.Enum):
    """Header with which a reverse proxy is instructed to send a file itself."""

    NGINX = "X-Accel-Redirect"
    APACHE = "X-Sendfile"


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    folders: tuple[str, ...] = ()
    """Folders with files that may be sent, with symbolic links resolved."""
    active: bool = False
    """Types that can run scripts are shown in the browser where the comment says `inline`."""
    largest: int = 33_554_432
    """Most bytes of a value of type bytea."""
    send_file: SendFile | None = None
    location: str = ""
    """Internal location of nginx below which the folders are."""
    link_seconds: int | None = None
    """Lifetime of the presigned address to which clients are redirected for objects. None: they are sent here."""
