"""`encrypt`: texts of a request are sealed before anything of them reaches the database (protection-8, protection-9).

After validation and hashing, which are about what was sent; before placeholders, resolved parameters and the key of
the cache's entry are asked for nothing that is secret.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.text import array_literal
from rowcall.service.encryption.binding import parameter_binding, prefix, seal_bound
from rowcall.service.encryption.columns import BOUND_PURPOSE, PURPOSE
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import NoKeyError
from rowcall.service.protection.protector import Protector
from rowcall.service.request_context.request_context import RequestContext, Step

Seal = Callable[[bytes], str]

TEXTS = frozenset({"text", "character varying", "bpchar", "character", "varchar", "name"})
"""What a comment may make of a parameter that takes anything, so that it holds a sealed text."""


def encrypt_parameters(endpoint: Endpoint, services: Services) -> Step | None:
    sealed = sealed_parameters(endpoint) if services.options.encrypts else {}
    if not sealed:
        return None
    chosen = [
        (1 << index, parameter.array, parameter.delimiter, _sealer(endpoint, services, parameter))
        for index, parameter in sealed.items()
    ]
    source = endpoint.routine.source
    compared = frozenset() if source is None else source.compared
    in_vain = {1 << index: one.api_name for index, one in sealed.items() if one.db_name in compared}

    def seal_array(value: bytes, delimiter: str, seal: Seal) -> str:
        items = within(array_literal.parse(value.decode(), delimiter), seal)
        return array_literal.literal(items, quoted=True, delimiter=delimiter)

    def within(items: list[array_literal.Nested], seal: Seal) -> list[array_literal.Nested]:
        return [
            within(item, seal) if isinstance(item, list) else None if item is None else seal(item.encode())
            for item in items
        ]

    def encrypt(context: RequestContext) -> None:
        for bit, name in in_vain.items():
            if context.mask & bit:
                # A text is sealed differently each time: no row would ever fit it.
                raise Problem(400, f"{name} is kept encrypted, so no row can be found by it")
        try:
            for bit, array, delimiter, seal in chosen:
                if not context.mask & bit:
                    continue
                position = (context.mask & (bit - 1)).bit_count()
                value = context.arguments[position]
                if value is not None:
                    text = seal_array(value, delimiter, seal) if array else seal(value)
                    context.arguments[position] = text.encode()
        except NoKeyError:
            raise unavailable("there is no key to encrypt with at the moment") from None

    return encrypt


def _sealer(endpoint: Endpoint, services: Services, parameter: EndpointParameter) -> Seal:
    """Seals what is sent for this parameter, bound to its column or name if one is known."""
    wanted = endpoint.options.encryption
    binding = "" if wanted is None else parameter_binding(endpoint, wanted, parameter)
    if not binding:
        return Protector(services.auth.keys, PURPOSE).seal
    return partial(seal_bound, Protector(services.auth.keys, BOUND_PURPOSE), start=prefix(binding))


def sealed_parameters(endpoint: Endpoint) -> dict[int, EndpointParameter]:
    """By index: those whose values `encrypt` seals."""
    wanted = endpoint.options.encryption
    if wanted is None:
        return {}
    return {
        index: parameter
        for index, parameter in enumerate(endpoint.parameters)
        if parameter.db_name in wanted.parameters or (wanted.all_parameters and _is_text(parameter))
    }


def _is_text(parameter: EndpointParameter) -> bool:
    """Domains over texts too: what the comment wants sealed must not reach the database as it came."""
    return not parameter.array and (parameter.textual or parameter.cast.partition("(")[0].strip() in TEXTS)
