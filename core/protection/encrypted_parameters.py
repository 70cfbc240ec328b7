"""The parameters that `encrypt` applies to (protection-8, protection-9)."""

from __future__ import annotations

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter

TEXTS = frozenset({"text", "character varying", "bpchar", "character", "varchar", "name"})
"""Types to which a comment may set a parameter without a type, so that it can hold an encrypted text."""


def encrypted_parameters(endpoint: Endpoint) -> dict[int, EndpointParameter]:
    """Return the parameters that `encrypt` applies to, by index."""
    encryption = endpoint.options.encryption
    if encryption is None:
        return {}
    return {
        index: parameter
        for index, parameter in enumerate(endpoint.parameters)
        if parameter.db_name in encryption.parameters or (encryption.all_parameters and _is_text(parameter))
    }


def _is_text(parameter: EndpointParameter) -> bool:
    """Return whether the parameter is a text, and not an array of texts. Domains over texts count too, because their
    values must not stay unencrypted."""
    return not parameter.array and (parameter.textual or parameter.cast.partition("(")[0].strip() in TEXTS)
