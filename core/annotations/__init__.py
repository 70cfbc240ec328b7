"""The list of all annotations: parser, `--annotations` and manual are derived from it.

To add an annotation, declare it in a module of `rows`, and add a new module to `_MODULES`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.annotations.declaration import Annotation
from rowcall.core.annotations.rows import (
    access,
    accounts,
    cache,
    client_code,
    documents,
    downloads,
    encryption,
    events,
    execution,
    exposure,
    idempotency,
    identity,
    jobs,
    limits,
    outgoing,
    param,
    parameters,
    queryable,
    raw,
    request,
    response,
    sqlfiles,
    table_formats,
    tables,
    tenancy,
    uploads,
    validation,
    webhooks,
)

_MODULES = (
    exposure,
    parameters,
    param,
    request,
    validation,
    access,
    identity,
    accounts,
    limits,
    encryption,
    execution,
    tenancy,
    idempotency,
    jobs,
    webhooks,
    response,
    queryable,
    raw,
    table_formats,
    tables,
    sqlfiles,
    cache,
    outgoing,
    uploads,
    downloads,
    events,
    client_code,
    documents,
)

GROUPS: Mapping[str, tuple[Annotation, ...]] = {
    module.__name__.rpartition(".")[2]: tuple(module.ANNOTATIONS) for module in _MODULES
}
"""The annotations by the names of their modules."""

CATALOGUE: tuple[Annotation, ...] = tuple(annotation for group in GROUPS.values() for annotation in group)

BY_WORD: Mapping[str, Annotation] = {word: annotation for annotation in CATALOGUE for word in annotation.aliases}

BY_PHRASE: Mapping[str, Annotation] = {annotation.phrase: annotation for annotation in CATALOGUE if annotation.phrase}
