"""What becomes of a request whose values or names do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.core.errors.binding_error import BindingError, Fault

ABSENT_STATUSES = (404, 400, 422)


@dataclass(frozen=True, slots=True)
class Refusals:
    absent: int = 404
    """Status for names that are missing or unknown (binding-25, binding-26)."""
    ignores_unknown_parameters: bool = False
    """Names of the query that are none of the endpoint's are left alone."""
    lenient: bool = False
    """As the field does it: a text that cannot be used gives way to a default, else 404; a JSON value is 500; the
    values of a repeated key are joined."""

    def error(self, faults: Sequence[Fault], *, in_json: bool) -> BindingError:
        """Names come before values: a value may be wrong because it was meant for another name."""
        first = next((fault for fault in faults if not fault.invalid_value), None)
        if first is not None:
            return BindingError.of(self.absent, faults, first)
        status = 400
        if self.lenient:
            status = 500 if in_json else 404
        return BindingError.of(status, faults, faults[0])


FIELD = Refusals()
