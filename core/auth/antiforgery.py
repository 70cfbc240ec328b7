"""Options of antiforgery: where its tokens travel, and whether they are required (browsers-6 to browsers-10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AntiforgeryOptions:
    cookie: str
    field: str
    header: str
    reads_forms: bool = True
    """The token may be in a form field."""
    refuses_frames: bool = True
    """Pages with tokens carry a header that forbids other sites to frame them."""
    enforced: bool = True
    token_path: str | None = None
    field_tag: str | None = None
    """Placeholder in pages for the name of the form field."""
    token_tag: str | None = None
    """Placeholder in pages for the token."""
