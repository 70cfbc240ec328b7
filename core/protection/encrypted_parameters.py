"""The parameters that `encrypt` applies to (protection-8, protection-9)."""

from __future__ import annotations

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind

TEXTS = frozenset({"text", "character varying", "bpchar", "character", "varchar", "name"})
"""Types to which a comment may set a parameter without a type, so that it can hold an encrypted text."""
_NEVER = frozenset(ValueKind) - {ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER, ValueKind.COMPOSITE}
"""Kinds of values that are never encrypted: numbers, booleans, dates, times and UUIDs."""


def encrypted_parameters(endpoint: Endpoint) -> dict[int, EndpointParameter]:
    """Return the parameters that `encrypt` applies to, by index."""
    encryption = endpoint.options.encryption
    if encryption is None:
        return {}
    return {
        index: parameter
        for index, parameter in enumerate(endpoint.parameters)
        if (parameter.db_name in encryption.parameters and not is_never_encrypted(parameter))
        or (encryption.all_parameters and _is_text(parameter))
    }


def is_never_encrypted(parameter: EndpointParameter) -> bool:
    """Return whether the parameter is a number, boolean, date, time or UUID, or an array of them, which cannot hold an
    encrypted text. False if the comment sets the type as which the values of another type are read."""
    return parameter.kind in _NEVER and parameter.type_text == parameter.cast


def _is_text(parameter: EndpointParameter) -> bool:
    """Return whether the parameter is a text, and not an array of texts. Domains over texts count too, because their
    values must not stay unencrypted."""
    return not parameter.array and (parameter.textual or parameter.cast.partition("(")[0].strip() in TEXTS)
