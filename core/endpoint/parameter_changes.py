"""Changes of parameters by `param` lines: name, type, default (comments-22 to comments-25).

The comment is read before composite parameters are expanded. So reading a line only makes a `ParameterChange`, and the
changes are applied here in the order of the lines: later lines use the names that earlier lines set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.catalogue.casting import takes_no_text
from rowcall.core.catalogue.catalog import Routine, TypeInfo, TypeKind
from rowcall.core.catalogue.type_names import NamedType, named_type
from rowcall.core.endpoint.endpoint import EndpointParameter
from rowcall.core.endpoint.parameters import Naming, kind_and_fields
from rowcall.core.errors.diagnostics import Diagnostic

_NAME = re.compile(r"[^\W\d][\w$]*|\$\d+")


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """The change of a parameter by one line. name, type: the new ones; None: unchanged. defaulted: `default` is the new
    default; None: NULL."""

    line: str
    """The line without secrets, for messages."""
    parameter: str
    """Database name, name in requests or field name, in any case."""
    name: str | None = None
    type: str | None = None
    defaulted: bool = False
    default: str | None = None


def is_parameter_name(text: str) -> bool:
    """Return whether a text has the form of a parameter name: an identifier, or `$n`."""
    return _NAME.fullmatch(text) is not None


def change_parameters(
    parameters: tuple[EndpointParameter, ...],
    changes: list[ParameterChange],
    routine: Routine,
    types: Mapping[int, TypeInfo],
    naming: Naming,
) -> tuple[tuple[EndpointParameter, ...], list[Diagnostic]]:
    """Return the parameters after all changes, and diagnostics of changes that are not possible."""
    if not changes:
        return parameters, []
    changing = _ParameterEditor(list(parameters), routine, types, naming)
    for change in changes:
        changing.apply(change)
    return tuple(changing.parameters), changing.diagnostics


def check_pseudo_types(
    parameters: tuple[EndpointParameter, ...], routine: Routine, types: Mapping[int, TypeInfo]
) -> Iterator[Diagnostic]:
    """Report parameters of pseudo-types without a declared type, for which no value of a request can be sent.
    Without a default of the parameter, the endpoint is left out."""
    if routine.source is not None:
        return
    for parameter in parameters:
        declared = routine.parameters[parameter.position]
        if parameter.reads_as is None and parameter.attribute is None and takes_no_text(types.get(declared.type_oid)):
            message = (
                f"parameter {parameter.db_name} is of the pseudo-type {declared.type_name}, and no value of a request "
                "says which type it is: declare one, or say it in the comment: "
                f"`param {parameter.db_name} type is int4range`"
            )
            left_out = 0 if parameter.has_default else 1
            yield Diagnostic(routine.identity, None, message + "; it is left out" * left_out, left_out=left_out)


class _ParameterEditor:
    """Applies the changes of one comment to a list of parameters. diagnostics: of changes that are not possible."""

    def __init__(
        self,
        parameters: list[EndpointParameter],
        routine: Routine,
        types: Mapping[int, TypeInfo],
        naming: Naming,
    ) -> None:
        self.parameters = parameters
        self.diagnostics: list[Diagnostic] = []
        self._routine = routine
        self._types = types
        self._naming = naming

    def apply(self, change: ParameterChange) -> None:
        """Apply one change to the parameter that it names, or to the fields of a composite that it names. If it names
        neither, add a diagnostic."""
        single = self._single(change.parameter)
        composite = [] if single is not None else self._fields(change.parameter)
        if single is not None:
            self._change_one(single, change)
        elif composite:
            self._change_composite(composite, change)
        else:
            self._report(change, f"the routine has no parameter {change.parameter}")

    def _single(self, word: str) -> int | None:
        """Return the index of the parameter, or of the field of a composite, that the word names; None: no such
        parameter."""
        name = word.lower()
        for index, parameter in enumerate(self.parameters):
            own = parameter.db_name if parameter.attribute is None else parameter.field
            if name in (own.lower(), parameter.api_name.lower()):
                return index
        return None

    def _fields(self, word: str) -> list[int]:
        """Return the indexes of all fields of the composite parameter that the word names."""
        name = word.lower()
        return [index for index, parameter in enumerate(self.parameters) if parameter.db_name.lower() == name]

    def _change_one(self, index: int, change: ParameterChange) -> None:
        """Change the parameter or field at an index. An unknown type is reported, and the other changes apply."""
        parameter = self.parameters[index]
        if change.name is not None:
            db_name = change.name if parameter.attribute is None else parameter.db_name
            parameter = replace(parameter, db_name=db_name, api_name=change.name, field=change.name)
        if change.type is not None:
            # The type may have several words, such as double precision; otherwise words after the first are prose.
            new_type = named_type(change.type, self._types) or named_type(change.type.split()[0], self._types)
            if new_type is None:
                self._report(change, f"{change.type} is not a known type; the type stays {parameter.type_text}")
            else:
                parameter = self._with_type(parameter, new_type)
        if change.defaulted:
            parameter = replace(parameter, defaulted=True, default=change.default)
        self.parameters[index] = parameter

    def _with_type(self, parameter: EndpointParameter, new_type: NamedType) -> EndpointParameter:
        """Return the parameter with values read as the new type.

        The argument keeps its own type; otherwise PostgreSQL would look up another routine. Only an argument of a
        pseudo-type gets the new type.
        """
        declared = self._types.get(self._routine.parameters[parameter.position].type_oid)
        kind, fields = kind_and_fields(new_type.element, self._types, self._naming.camel)
        takes_anything = parameter.attribute is None and declared is not None and declared.kind is TypeKind.PSEUDO
        return replace(
            parameter,
            kind=kind,
            array=new_type.array,
            fields=fields,
            delimiter=new_type.element.delimiter,
            reads_as=new_type.cast,
            cast=new_type.cast if takes_anything else parameter.cast,
        )

    def _change_composite(self, indexes: list[int], change: ParameterChange) -> None:
        """Rename a composite, whose fields have these indexes. A new type or default is reported."""
        if change.type is not None or change.defaulted:
            fields = ", ".join(self.parameters[index].api_name for index in indexes)
            self._report(change, f"{change.parameter} is a composite; name one of its fields: {fields}")
        if change.name is None:
            return
        for index in indexes:
            parameter = self.parameters[index]
            field, api_name = self._naming.field(change.name, parameter.attribute or "", index + 1)
            self.parameters[index] = replace(
                parameter, db_name=change.name, api_name=api_name, field=field, group=change.name
            )

    def _report(self, change: ParameterChange, message: str) -> None:
        """Add a diagnostic for the line of a change."""
        self.diagnostics.append(Diagnostic(self._routine.identity, change.line, message))
