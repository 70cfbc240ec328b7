"""Inserts of many rows: their JSON becomes one array for each column where PostgreSQL would read the same from both.

PostgreSQL takes much less time to read arrays than to read JSON, and the body is read here only once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowcall.core.postgrest.request.payload import Payload, PayloadKind
from rowcall.core.postgrest.schema import Column, Schema
from rowcall.core.postgrest.sql.array_elements import array_element
from rowcall.ext.binding.json_rows import ColumnForm, array_literals, first_keys


class ManyRows:
    """Reads the bodies of inserts with one schema snapshot."""

    def __init__(self, schema: Schema) -> None:
        self._relations = schema.relations
        self._forms: dict[tuple[str, str], Mapping[str, ColumnForm]] = {}
        """Forms by name of the column, for each relation into which something was inserted."""

    def read(self, relation: tuple[str, str], body: bytes, columns: Sequence[str] | None) -> Payload | None:
        """Return a payload with arrays; None: the body has to be passed as it is, or is invalid.

        relation: its schema and name. body: JSON. columns: value of the parameter `columns`; None: the request has
        none.
        """
        keys = first_keys(body)
        if keys is None:
            return None
        forms = self._forms_of(relation)
        written = set(keys if columns is None else columns)
        if not written or not written <= forms.keys() or not written.issubset(keys):
            return None
        literals = array_literals(body, tuple(forms[key] if key in written else None for key in keys))
        if literals is None:
            return None
        arrays = {key: literal for key, literal in zip(keys, literals, strict=True) if literal is not None}
        # Sorted, so that objects with the same keys in another order have the same shape.
        names = tuple(sorted(arrays))
        return Payload(PayloadKind.JSON, "", names, is_array=True, arrays=tuple(arrays[name] for name in names))

    def _forms_of(self, name: tuple[str, str]) -> Mapping[str, ColumnForm]:
        """Return the forms of the columns of a relation (schema, name) that may be passed as arrays."""
        forms = self._forms.get(name)
        if forms is None:
            relation = self._relations.get(name)
            if relation is None:
                return {}
            forms = self._forms[name] = {
                column.name: form for column in relation.columns if (form := _form(column)) is not None
            }
        return forms


def _form(column: Column) -> ColumnForm | None:
    """Return the form of the values of a column; None: they may not be passed as an array."""
    element = array_element(column)
    return None if element is None else ColumnForm(element.kind.value, element.limit, element.scale)
