"""What antiforgery is told: where its tokens travel, and whether they are asked for (browsers-6 to browsers-10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AntiforgeryOptions:
    cookie: str
    field: str
    header: str
    reads_forms: bool = True
    """The token may come in a field of a form."""
    refuses_frames: bool = True
    """Pages with tokens say that other sites may not frame them."""
    enforced: bool = True
    token_path: str | None = None
    field_tag: str | None = None
    """Placeholder of pages that stands for the name of the field."""
    token_tag: str | None = None
    """Placeholder of pages that stands for the token."""
