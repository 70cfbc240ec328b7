"""`encrypt`: encrypt texts of a request before they reach the database (protection-8, protection-9).

It follows validation and hashing, which need the plain values, and the recording of the values for cache keys. It
precedes placeholders, resolved parameters and the cache, so that these contain no secret.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rowcall.core.binding.invalid_values import InvalidValue
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.protection.encrypted_parameters import encrypted_parameters
from rowcall.core.text import array_literal
from rowcall.service.encryption.binding import parameter_binding, prefix, seal_bound
from rowcall.service.encryption.columns import BOUND_PURPOSE, PURPOSE
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import NoKeyError
from rowcall.service.protection.protector import Protector
from rowcall.service.request_context.request_context import RequestContext, Step

Seal = Callable[[bytes], str]


def encrypt_parameters(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that encrypts arguments; None: the endpoint encrypts none, or data protection is disabled.

    The step raises `Problem`: 400 for a parameter by which a table endpoint filters rows, because an encrypted text
    never equals another; 503 if there is no key. It raises `BindingError` for an array literal of the client that
    PostgreSQL would not accept.
    """
    sealed = encrypted_parameters(endpoint) if services.options.encrypts else {}
    if not sealed:
        return None
    targets = [
        (1 << index, parameter if parameter.array else None, _sealer(endpoint, services, parameter))
        for index, parameter in sealed.items()
    ]
    source = endpoint.routine.source
    compared = frozenset() if source is None else source.compared
    comparisons = {
        1 << index: sealed_parameter.api_name
        for index, sealed_parameter in sealed.items()
        if sealed_parameter.db_name in compared
    }

    def seal_array(value: bytes, parameter: EndpointParameter, seal: Seal) -> str:
        name, delimiter = parameter.api_name, parameter.delimiter
        try:
            items = encrypt_items(array_literal.parse(value.decode(), delimiter), seal)
            return array_literal.literal(items, quoted=True, delimiter=delimiter)
        except ValueError as error:
            fault = InvalidValue("", f"the value cannot be used: {error}", parameter.type_text).fault(name, name)
            raise BindingError.of(400, (fault,), fault) from None

    def encrypt_items(items: list[array_literal.Nested], seal: Seal) -> list[array_literal.Nested]:
        return [
            encrypt_items(item, seal) if isinstance(item, list) else None if item is None else seal(item.encode())
            for item in items
        ]

    def encrypt(context: RequestContext) -> None:
        for bit, name in comparisons.items():
            if context.mask & bit:
                # Each encryption of a text gives another result, so no row could match.
                raise Problem(400, f"{name} is stored encrypted, so rows cannot be searched by it")
        try:
            for bit, array, seal in targets:
                if not context.mask & bit:
                    continue
                position = (context.mask & (bit - 1)).bit_count()
                value = context.arguments[position]
                if value is not None:
                    text = seal(value) if array is None else seal_array(value, array, seal)
                    context.arguments[position] = text.encode()
        except NoKeyError:
            raise unavailable("there is no key to encrypt with at the moment") from None

    return encrypt


def _sealer(endpoint: Endpoint, services: Services, parameter: EndpointParameter) -> Seal:
    """Return the function that encrypts values of this parameter, bound to its column or name if one is known."""
    encryption = endpoint.options.encryption
    binding = "" if encryption is None else parameter_binding(endpoint, encryption, parameter)
    if not binding:
        return Protector(services.auth.keys, PURPOSE).seal
    return partial(seal_bound, Protector(services.auth.keys, BOUND_PURPOSE), start=prefix(binding))
