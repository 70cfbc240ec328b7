"""The files of the site, read from the archive that `make site` writes and wheels contain.

One archive instead of hundreds of files keeps the installed package small. It must not be extracted: the folder of the
package may be read-only.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = Path(__file__).parent / "site.zip"

_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class File:
    """One file of the site as it is sent."""

    body: bytes
    content_type: str
    policy: str
    """Value of Content-Security-Policy."""


class Site:
    """The files of an archive by URL path. Instances may be used by several threads.

    Raises OSError if the archive cannot be read, and zipfile.BadZipFile if it is no archive.
    """

    def __init__(self, archive: Path) -> None:
        with zipfile.ZipFile(archive) as packed:
            self._bodies = {name: packed.read(name) for name in packed.namelist()}

    def file(self, path: str) -> File | None:
        """Return the file for the decoded path of a URL, or None; a path that is empty or ends with `/` stands for the
        `index.html` of its folder."""
        name = path.lstrip("/")
        if name == "" or name.endswith("/"):
            name += "index.html"
        body = self._bodies.get(name)
        return None if body is None else File(body, _content_type(name), _policy(name, body))

    @property
    def not_found(self) -> File:
        """The page for paths without a file."""
        return self.file("/404.html") or File(b"Not found\n", "text/plain; charset=utf-8", "default-src 'none'")


def _content_type(name: str) -> str:
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    is_text = guessed.startswith("text/") or guessed in ("application/javascript", "application/json")
    return f"{guessed}; charset=utf-8" if is_text else guessed


def _policy(name: str, body: bytes) -> str:
    """Return the Content-Security-Policy of a page, which allows what the page itself contains: its own files, and its
    inline scripts by their hashes.
    """
    scripts = set(_INLINE_SCRIPT.findall(body)) if name.endswith(".html") else set()
    hashes = sorted(base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts)
    allowed = " ".join(("'self'", *(f"'sha256-{digest}'" for digest in hashes)))
    return (
        f"default-src 'self'; script-src {allowed}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
