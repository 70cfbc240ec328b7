"""A value that only the server could judge (an enum, a domain, json …) and has refused while it read the arguments.

Since version 14 PostgreSQL names the argument in the context of the error; nothing has run by then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rowcall.core.endpoint.endpoint import EndpointParameter
from rowcall.core.errors.binding_error import BindingError, Fault, type_word

_ARGUMENT = re.compile(r"portal (?:\"[^\"]*\" )?parameter \$(\d+)")


def refused_argument(context: str | None) -> int | None:
    """Number of the argument, from 1; None where the error is about something else."""
    found = _ARGUMENT.search(context) if context else None
    return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class ServerRefusals:
    """For one endpoint. own: indexes of parameters that the service fills, which no caller can do better."""

    parameters: Sequence[EndpointParameter]
    own: Collection[int] = ()

    def error(self, mask: int, place: int, message: str) -> BindingError | None:
        """place: of the value among those of the request."""
        present = [index for index in range(len(self.parameters)) if mask >> index & 1]
        if not 0 <= place < len(present) or present[place] in self.own:
            return None
        parameter = self.parameters[present[place]]
        detail = f"parameter '{parameter.api_name}' ({type_word(parameter.type_text)}): {message}"
        return BindingError(400, detail, faults=[Fault(parameter.api_name, parameter.api_name, detail)])
