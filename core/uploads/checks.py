"""Is a file what a handler takes? Its content type and its first bytes decide (uploads-11, uploads-12)."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import lru_cache


class Status(enum.Enum):
    """What became of a file, in the words of the metadata."""

    OK = "Ok"
    EMPTY = "Empty"
    PROBABLY_BINARY = "ProbablyBinary"
    NO_NEW_LINES = "NoNewLines"
    INVALID_IMAGE = "InvalidImage"
    INVALID_FORMAT = "InvalidFormat"
    INVALID_MIME_TYPE = "InvalidMimeType"
    IGNORED = "Ignored"
    """An earlier handler has stored it."""
    REJECTED = "Rejected"
    """A command of the comment did not let it pass."""


IMAGE_BYTES = 12
"""That tell what kind of image a file is."""

IMAGE_TYPES = frozenset({"jpeg", "png", "gif", "bmp", "tiff", "webp"})

_ALIASES = {"jpg": "jpeg", "tif": "tiff"}
_SIGNATURES = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
)
_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\r")


@dataclass(frozen=True, slots=True)
class Checks:
    """What one handler asks of a file. The order: content type, text, image."""

    included: tuple[str, ...] = ()
    """Patterns of content types, of which one has to fit; empty: every type will do."""
    excluded: tuple[str, ...] = ()
    text: bool = False
    lines: bool = False
    """Of a text, that it has a line break among the bytes looked at."""
    text_bytes: int = 4096
    """Looked at to tell text."""
    control_bytes: int = 5
    """That a text may have among them."""
    images: frozenset[str] = frozenset()
    """Kinds of images that will do; empty: it need not be one."""

    @property
    def sample(self) -> int:
        """Bytes of the file's beginning that `judge` needs."""
        return max(self.text_bytes if self.text else 0, IMAGE_BYTES if self.images else 0)

    def takes_type(self, content_type: str) -> bool:
        """A file without a type is taken only where every type is."""
        if self.included and not any(matches(pattern, content_type) for pattern in self.included):
            return False
        return not any(matches(pattern, content_type) for pattern in self.excluded)

    def judge(self, content_type: str, beginning: bytes) -> Status:
        """`beginning`: at least `sample` bytes, fewer only of a file that has no more."""
        if not self.takes_type(content_type):
            return Status.INVALID_MIME_TYPE
        if self.text:
            status = text_status(beginning[: self.text_bytes], self.control_bytes, lines=self.lines)
            if status is not Status.OK:
                return status
        if self.images and image_type(beginning) not in self.images:
            return Status.INVALID_IMAGE
        return Status.OK


def matches(pattern: str, content_type: str) -> bool:
    """`*` stands for any text and `?` for any character, the case does not matter; no type matches nothing."""
    return bool(content_type) and _compiled(pattern).fullmatch(content_type) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Neighbouring stars mean one: otherwise a pattern of many would take ages for a type that does not fit.
    parts = re.sub(r"\*+", "*", pattern)
    return re.compile("".join({"*": ".*", "?": "."}.get(item, re.escape(item)) for item in parts), re.I | re.S)


def text_status(beginning: bytes, control_bytes: int, *, lines: bool) -> Status:
    if not beginning:
        return Status.EMPTY
    if b"\0" in beginning or len(beginning) - len(beginning.translate(None, _CONTROL)) > control_bytes:
        return Status.PROBABLY_BINARY
    return Status.NO_NEW_LINES if lines and b"\n" not in beginning else Status.OK


def image_type(beginning: bytes) -> str | None:
    """`png` and the like; None for what is no image that is known."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "webp"
    return next((kind for signature, kind in _SIGNATURES if beginning.startswith(signature)), None)


def image_types(words: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Kinds of a list such as `jpg, png`, and the words that are none."""
    names = [_ALIASES.get(word, word) for word in words.lower().replace(",", " ").split()]
    return frozenset(names) & IMAGE_TYPES, tuple(name for name in names if name not in IMAGE_TYPES)


def patterns(words: str | None) -> tuple[str, ...]:
    """`text/*, image/png`; only commas separate."""
    return tuple(item.strip() for item in (words or "").split(",") if item.strip())
