"""Options of batches."""

from __future__ import annotations

from rowcall.core.data.record import Record
from rowcall.core.sections.declaration import flag, integer, interval, section, text, texts
from rowcall.core.sections.values import lower_case_texts


@section("Batch", "Several requests in one, in one transaction or independent of each other.")
class BatchOptions(Record):
    """Options of batches.

    path: of the endpoint. seconds: time limit of a whole batch. most_bytes: of all responses of a batch together.
    """

    enabled: bool = flag("Enabled", False, "Accept batches.")
    path: str = text("Path", "/batch", "Path to which batches are posted.")
    most_requests: int = integer("MaxRequests", 50, "Most requests of a batch.", minimum=1)
    most_bytes: int = integer(
        "MaxResponseBytes", 10_000_000, "Most bytes of all responses of a batch together.", minimum=1024
    )
    seconds: float = interval("Timeout", "30 seconds", "Time limit of a whole batch.")
    refused_headers: frozenset[str] = texts(
        "RefusedHeaders",
        (),
        "Headers that single requests of a batch cannot set, besides those in the manual: headers by which a gateway "
        "describes the caller, such as X-Client-Dn.",
        convert=lower_case_texts,
    )
