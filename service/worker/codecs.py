"""How the types of a catalogue are rendered."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.catalogue.catalog import FIRST_USER_OID, TypeInfo, TypeKind
from rowcall.core.documents.wire_types import OIDS as SAFE_OIDS
from rowcall.core.text.naming import nested_name
from rowcall.ext.rendering.codecs import Codecs
from rowcall.service.options.worker import WorkerOptions


def codecs_for(types: Mapping[int, TypeInfo], options: WorkerOptions) -> Codecs:
    """Return the codecs for the types of a catalogue, in addition to those built into PostgreSQL, which every registry
    has. types: by OID."""
    codecs = Codecs(options.resolve_nested)
    for info in types.values():
        if info.kind is TypeKind.COMPOSITE:
            codecs.define_composite(
                info.oid,
                [
                    (nested_name(attribute.name, options.camel_case).encode(), attribute.type_oid)
                    for attribute in info.attributes
                ],
            )
        elif info.oid < FIRST_USER_OID:
            continue
        elif info.kind is TypeKind.ARRAY:
            codecs.define_array(info.oid, info.element, types[info.element].delimiter if info.element in types else ",")
        elif info.kind is TypeKind.DOMAIN:
            codecs.define_domain(info.oid, info.base)
    return codecs


def safe_codecs_for(types: Mapping[int, TypeInfo], options: WorkerOptions) -> Codecs | None:
    """Return the rendering for responses with large numbers as texts; None if the option is off. types: by oid."""
    if not options.safe_numbers:
        return None
    codecs = codecs_for(types, options)
    for oid in SAFE_OIDS:
        codecs.define_scalar(oid, "text")
    return codecs
