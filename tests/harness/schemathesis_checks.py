"""A check for the schemathesis command, which loads this module by `SCHEMATHESIS_HOOKS`.

It replaces `positive_data_acceptance`, for which every 400 to a request that matches the schema is a failure.
"""

from __future__ import annotations

import re
from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_EMPTY_DATE = "'' is not a date"


@schemathesis.check
def accepted_unless_the_database_refuses(context: Any, response: Any, case: Any) -> bool | None:
    """Allow a 400 whose `detail` is the SQLSTATE of an error that the routine or a constraint raised: no schema can
    state these rules. Also that of an empty text for a nullable date, which schemathesis sends for `"type": ["string",
    "null"], "format": "date"`."""
    if response.status_code == 400:
        detail = response.json().get("detail", "")
        if _SQLSTATE.fullmatch(detail) or _EMPTY_DATE in detail:
            return None
    accepted: bool | None = positive_data_acceptance(context, response, case)
    return accepted


@schemathesis.check
def refused_unless_the_body_is_blank(context: Any, response: Any, case: Any) -> bool | None:
    body = response.request.body
    if isinstance(body, str | bytes) and not body.strip():
        return None
    refused: bool | None = negative_data_rejection(context, response, case)
    return refused
