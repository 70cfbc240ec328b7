"""Annotations about requests that must take effect once: idempotent."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, keyword_form, split_at_word
from rowcall.core.endpoint.capabilities import Idempotency
from rowcall.core.text.interval import parse_interval


def _assign_idempotent(draft: Draft, value: str) -> None:
    """Apply `required for 24 hours`, of which each part may be missing. Raises `BadValueError` for another form."""
    words, behind = split_at_word(value, "for")
    interval = (behind or "").strip()
    required = words.strip().lower()
    seconds = parse_interval(interval) if interval else None
    if required not in ("", "required") or (interval and not seconds):
        raise BadValueError(f"'{value}' is none of: required, for 24 hours, required for 24 hours")
    draft.set(idempotency=Idempotency(required == "required", seconds))


ANNOTATIONS = (
    Annotation(
        name="idempotent",
        aliases=("idempotent",),
        syntax="idempotent [required] [for <interval>]",
        description="A request with the header Idempotency-Key takes effect once: a repetition gets the stored "
        "response. `required` refuses requests without it. `for` is the time for which responses are stored.",
        apply=keyword_form(_assign_idempotent),
        assign=_assign_idempotent,
    ),
)
