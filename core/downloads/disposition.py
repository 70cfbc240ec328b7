"""Content-Disposition (RFC 6266), and the media types that browsers would run."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNSAFE_IN_QUOTES = re.compile(r'[^\x20-\x7e]|["\\%/]')
_ENDS = re.compile(r"^[\s.]+|[\s.]+$")
LONGEST_NAME = 255
_PASSIVE = re.compile(
    r"(?:image/(?!svg)[\w.+-]+|audio/[\w.+-]+|video/[\w.+-]+|font/[\w.+-]+|text/(?:plain|csv|markdown)"
    r"|application/(?:pdf|json|octet-stream|zip|gzip))",
    re.IGNORECASE,
)


def is_passive(content_type: str) -> bool:
    """Return whether a browser shows the type without running scripts with the rights of the site.

    PDF is passive, because its viewer has a sandbox of its own. HTML, SVG, XML and unknown types are not passive.
    """
    return _PASSIVE.fullmatch(content_type.partition(";")[0].strip()) is not None


def safe_name(name: str) -> str:
    """Return the last part of a file name (behind `/` or `\\`), without control characters, cut to `LONGEST_NAME`
    bytes, and without blanks and dots at its ends; empty if nothing remains."""
    last = _ENDS.sub("", re.split(r"[/\\]", _CONTROL.sub("", name))[-1])
    # Half of a surrogate pair and the end of the cut may leave blanks and dots at the ends again.
    return _ENDS.sub("", last.encode(errors="ignore")[:LONGEST_NAME].decode(errors="ignore"))


def content_disposition(kind: str, name: str) -> str:
    """Return the value of the header. kind: `inline` or `attachment`. name: empty if the file has none; cleaned by
    `safe_name`.

    A name with characters outside of ASCII, quotes, `\\` or `%` is given twice: for old clients with base letters or
    `_` in their place, and in UTF-8 (RFC 8187).
    """
    name = safe_name(name)
    if not name:
        return kind
    plain = "".join(item for item in unicodedata.normalize("NFKD", name) if not unicodedata.combining(item))
    fallback = _ENDS.sub("", _UNSAFE_IN_QUOTES.sub("_", plain)) or "file"
    header = f'{kind}; filename="{fallback}"'
    return header if fallback == name else f"{header}; filename*=UTF-8''{quote(name, safe='!#$&+-.^_`|~')}"
