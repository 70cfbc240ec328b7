"""Status of responses to requests with invalid values or names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.core.errors.binding_error import BindingError, Fault

ABSENT_STATUSES = (404, 400, 422)


@dataclass(frozen=True, slots=True)
class Refusals:
    """How requests with invalid values, or with missing or unknown names, are refused."""

    absent: int = 404
    """Status for missing or unknown names (binding-25, binding-26)."""
    ignores_unknown_parameters: bool = False
    """Ignore unknown parameters of a query string."""
    lenient: bool = False
    """As in comparable services: an invalid text is replaced by the default, or gives 404 without one; an invalid JSON
    value gives 500; the values of a repeated key are joined."""

    def error(self, faults: Sequence[Fault], *, in_json: bool) -> BindingError:
        """Return the error for faults of a request.

        Faults of names precede those of values, because a value may be wrong as it was meant for another name. faults:
        at least one. in_json: the values are from a JSON body, where they give 500 instead of 404 if `lenient`.
        """
        first = next((fault for fault in faults if not fault.invalid_value), None)
        if first is not None:
            return BindingError.of(self.absent, faults, first)
        status = 400
        if self.lenient:
            status = 500 if in_json else 404
        return BindingError.of(status, faults, faults[0])


FIELD = Refusals()
