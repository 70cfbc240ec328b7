"""One declaration for each annotation; parser, `--annotations` and manual are all made from this list.

To add one: declare it in a module of this package and name the module here.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.annotations import access, execution, exposure, parameters, raw, request, response, table_formats
from rowcall.core.annotations.declaration import Annotation

_MODULES = (exposure, parameters, request, access, execution, response, raw, table_formats)

CATALOGUE: tuple[Annotation, ...] = tuple(annotation for module in _MODULES for annotation in module.ANNOTATIONS)

BY_WORD: Mapping[str, Annotation] = {word: annotation for annotation in CATALOGUE for word in annotation.aliases}
