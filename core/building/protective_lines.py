"""Lines that protect an endpoint and name parameters, columns or rules that do not exist or cannot be protected.

Without the protection, the endpoint would pass on plain or unchecked values, so it is left out with the reason. Prose
that begins with the same word (`Encrypt the values at rest.`) only gives a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rowcall.core.annotations.declaration import NamedLine
from rowcall.core.annotations.sentences import reads_as_sentence, unknown_words
from rowcall.core.building.configuration_checks import KnownNames
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPath
from rowcall.core.endpoint.resolved_parameters import unsupplied_parameters
from rowcall.core.endpoint.validation import validated_parameter
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.protection.encrypted_parameters import is_never_encrypted
from rowcall.core.tables.routines import TableOperation
from rowcall.core.text.naming import api_name


def unknown_names_in_lines(endpoint: Endpoint, lines: Sequence[NamedLine], known: KnownNames) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each line that names an unknown parameter, column or rule; most leave the endpoint out.

    lines: those with `encrypt`, `decrypt` and `validate`. known: names of the configuration, for the rules of
    `validate`.
    """
    validations = iter(endpoint.options.validations)
    for line in lines:
        if line.annotation == "encrypt":
            yield from _check_encrypt(endpoint, line)
            yield from _check_later_values(endpoint, line)
            yield from _check_types(endpoint, line)
        elif line.annotation == "decrypt":
            yield from _check_decrypt(endpoint, line)
        else:
            # Not by the words of the line, because a later line may have renamed the parameter.
            parameter, rule_names = next(validations)
            yield from _check_validate(endpoint, line, parameter, rule_names, known)


def _check_encrypt(endpoint: Endpoint, line: NamedLine) -> Iterator[Diagnostic]:
    """Yield a diagnostic if `encrypt` names unknown parameters. Columns of the table are known, also those that the
    operation does not use."""
    unknown = unknown_words(line.words, {*line.known, *_table_columns(endpoint)})
    if unknown:
        listed = ", ".join(dict.fromkeys(parameter.db_name for parameter in endpoint.parameters)) or "(none)"
        message = f"the routine has no parameter {', '.join(unknown)} to encrypt; its parameters are {listed}"
        yield _diagnostic(endpoint, line, message, names=_parameter_names(endpoint, line))


def _check_later_values(endpoint: Endpoint, line: NamedLine) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each parameter in an `encrypt` line whose value is set after encryption, by SQL of the
    comment, another service or an upload."""
    words = {word.lower() for word in line.words}
    later = unsupplied_parameters(endpoint) | endpoint.outgoing.filled
    for name in dict.fromkeys(endpoint.parameters[index].db_name for index in sorted(later)):
        if not words.isdisjoint((name.lower(), api_name(name).lower())):
            message = f"{name} is set after encryption, so its value would not be encrypted"
            yield _diagnostic(endpoint, line, message, names=_parameter_names(endpoint, line))


def _check_types(endpoint: Endpoint, line: NamedLine) -> Iterator[Diagnostic]:
    """Yield a warning for each parameter in an `encrypt` line that has no value which can be encrypted, because of its
    type: for a composite, only if this applies to all of its fields."""
    words = {word.lower() for word in line.words}
    parameters: dict[str, list[EndpointParameter]] = {}
    for parameter in endpoint.parameters:
        parameters.setdefault(parameter.db_name, []).append(parameter)
    for name, fields in parameters.items():
        if words.isdisjoint((name.lower(), api_name(name).lower())) or not all(map(is_never_encrypted, fields)):
            continue
        message = f"{name} is {fields[0].composite or fields[0].cast}, of which no value is encrypted"
        yield Diagnostic(endpoint.routine.identity, line.line.shown, message)


def _check_decrypt(endpoint: Endpoint, line: NamedLine) -> Iterator[Diagnostic]:
    """Yield a diagnostic if `decrypt` names unknown columns. A scalar result is decrypted whatever the line names, and
    a result without columns has nothing to decrypt, so these are not checked.
    """
    shapes = (endpoint.shape, *(part.shape for part in endpoint.shape.parts))
    columns = [column for shape in shapes for column in shape.columns]
    if not columns or any(shape.path is ResultPath.SCALAR for shape in shapes):
        return
    names = frozenset().union(*(column.names for column in columns), _table_columns(endpoint))
    unknown = unknown_words(line.words, names)
    if not unknown:
        return
    listed = ", ".join(dict.fromkeys(column.column.name for column in columns))
    message = f"the result has no column {', '.join(unknown)} to decrypt; its columns are {listed}"
    yield _diagnostic(endpoint, line, message, names=names)


def _check_validate(
    endpoint: Endpoint, line: NamedLine, parameter: str, rule_names: Sequence[str], known: KnownNames
) -> Iterator[Diagnostic]:
    """Yield diagnostics for a `validate` line whose parameter or rules do not exist.

    A rule that the operator has switched off gives only a warning. parameter, rule_names: of the line.
    """
    messages = []
    if validated_parameter(endpoint, parameter) is None and parameter not in _table_columns(endpoint):
        messages.append(f"validate {parameter!r} names no parameter")
    for rule in rule_names:
        if rule in known.disabled_rules:
            message = f"validate {parameter!r}: the rule {rule!r} is not checked, as ValidationOptions:Enabled is false"
            yield Diagnostic(endpoint.routine.identity, line.line.shown, message)
        elif known.rules is not None and rule not in known.rules:
            messages.append(f"validate {parameter!r}: the rule {rule!r} is none of {', '.join(sorted(known.rules))}")
    names = {*(rule_names if known.rules is None else known.rules), *known.disabled_rules}
    names |= {name for item in endpoint.parameters for name in (item.field or item.db_name, item.api_name)}
    for message in messages:
        yield _diagnostic(endpoint, line, message, names=names)


def _diagnostic(endpoint: Endpoint, line: NamedLine, message: str, *, names: Collection[str]) -> Diagnostic:
    """Return the diagnostic for a line that cannot protect. It leaves the endpoint out, unless the line is prose.

    names: all valid names in this line.
    """
    prose = reads_as_sentence(line.line, line.words, names)
    ending = "the line is prose" if prose else "the endpoint is left out"
    return Diagnostic(endpoint.routine.identity, line.line.shown, f"{message}; {ending}", left_out=0 if prose else 1)


def _parameter_names(endpoint: Endpoint, line: NamedLine) -> Collection[str]:
    """Return the names that parameters have in the database, in requests and in an `encrypt` line."""
    names = [name for parameter in endpoint.parameters for name in (parameter.db_name, parameter.api_name)]
    return [*names, *line.known]


def _table_columns(endpoint: Endpoint) -> Collection[str]:
    """Return the names of all columns of the table of an operation, in the database and in requests; empty for other
    endpoints.

    All columns count, because an operation may use only some, but the comment applies to all operations of the table.
    """
    source = endpoint.routine.source
    if not isinstance(source, TableOperation):
        return ()
    return frozenset(name for column in source.table.columns for name in (column.name, api_name(column.name)))
