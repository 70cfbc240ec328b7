"""Checks of a file by its content type and its first bytes (uploads-11, uploads-12)."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import lru_cache


class Status(enum.Enum):
    """Result of the checks of a file. Values are the words in the metadata."""

    OK = "Ok"
    EMPTY = "Empty"
    PROBABLY_BINARY = "ProbablyBinary"
    NO_NEW_LINES = "NoNewLines"
    INVALID_IMAGE = "InvalidImage"
    INVALID_FORMAT = "InvalidFormat"
    INVALID_MIME_TYPE = "InvalidMimeType"
    IGNORED = "Ignored"
    """An earlier handler has stored the file."""
    REJECTED = "Rejected"
    """The check command has rejected the file."""


IMAGE_BYTES = 12
"""Number of first bytes that identify the type of an image."""

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
    """The checks of a handler, in this order: content type, text, image."""

    included: tuple[str, ...] = ()
    """Patterns of content types, one of which has to match; empty: every type is accepted."""
    excluded: tuple[str, ...] = ()
    """Patterns of content types that are refused."""
    text: bool = False
    lines: bool = False
    """Whether a text must have a line break among its first bytes."""
    text_bytes: int = 4096
    """Number of first bytes for the text check."""
    control_bytes: int = 5
    """Maximum number of control bytes among the first bytes of a text."""
    images: frozenset[str] | None = None
    """Accepted types of images; empty: no file is accepted; None: the file need not be an image."""

    @property
    def sample(self) -> int:
        """Number of first bytes of a file that `judge` needs."""
        return max(self.text_bytes if self.text else 0, 0 if self.images is None else IMAGE_BYTES)

    def takes_type(self, content_type: str) -> bool:
        """Return whether the content type is accepted. content_type: with its parameters, if it has any; empty: the
        file has none, and is accepted only if `included` is empty."""
        if self.included and not any(matches(pattern, content_type) for pattern in self.included):
            return False
        return not any(matches(pattern, content_type) for pattern in self.excluded)

    def judge(self, content_type: str, beginning: bytes) -> Status:
        """Return the result of the first check that fails; OK if none does. beginning: at least `sample` bytes, or the
        whole file if it is shorter."""
        if not self.takes_type(content_type):
            return Status.INVALID_MIME_TYPE
        if self.text:
            status = text_status(beginning[: self.text_bytes], self.control_bytes, lines=self.lines)
            if status is not Status.OK:
                return status
        if self.images is not None and image_type(beginning) not in self.images:
            return Status.INVALID_IMAGE
        return Status.OK


def matches(pattern: str, content_type: str) -> bool:
    """Return whether a content type matches a pattern, without regard to case: `*` is any text and `?` any character.

    A missing content type (empty) matches no pattern.
    """
    return bool(content_type) and _compile_pattern(pattern).fullmatch(content_type) is not None


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    # Adjacent stars are merged: otherwise the match of a pattern with many stars takes very long for a type that does
    # not match.
    parts = re.sub(r"\*+", "*", pattern)
    return re.compile("".join({"*": ".*", "?": "."}.get(item, re.escape(item)) for item in parts), re.I | re.S)


def text_status(beginning: bytes, control_bytes: int, *, lines: bool) -> Status:
    """Return the status of the check whether the beginning of a file is that of a text: OK, EMPTY, PROBABLY_BINARY or
    NO_NEW_LINES.

    A NUL, or more than `control_bytes` other control bytes besides tab, LF and CR, make it binary. lines: a text must
    have an LF.
    """
    if not beginning:
        return Status.EMPTY
    if b"\0" in beginning or len(beginning) - len(beginning.translate(None, _CONTROL)) > control_bytes:
        return Status.PROBABLY_BINARY
    return Status.NO_NEW_LINES if lines and b"\n" not in beginning else Status.OK


def image_type(beginning: bytes) -> str | None:
    """Return the type of an image, one of `IMAGE_TYPES`; None: it is unknown. beginning: the first `IMAGE_BYTES` bytes
    of the file, or more."""
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "webp"
    return next((kind for signature, kind in _SIGNATURES if beginning.startswith(signature)), None)


def image_types(words: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the image types in a list such as `jpg, png`, and the words that are no image types. words: in any case,
    separated by commas or blanks."""
    names = [_ALIASES.get(word, word) for word in words.lower().replace(",", " ").split()]
    return frozenset(names) & IMAGE_TYPES, tuple(name for name in names if name not in IMAGE_TYPES)


def patterns(words: str | None) -> tuple[str, ...]:
    """Return the patterns of content types in a list such as `text/*, image/png`; none for None. Only commas
    separate."""
    return tuple(item.strip() for item in (words or "").split(",") if item.strip())
