"""Values and the JSON they give: our own vectors, and those that lie beside the repository, where they do.

pg_type, sql: the type, and a statement whose column `v` has the value; pg_text: PostgreSQL's text of it; json (or
`recommended`): what is to be told; context: the place; setup: statements that make the types; resolve_nested: whether
composites in composites are resolved, true by default.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Vector = dict[str, Any]

OWN = Path(__file__).parents[1] / "vectors" / "serialization.json"
SHARED = Path("shared/reference/vectors-serialization.json")


def vectors() -> list[Vector]:
    own = json.loads(OWN.read_text())
    found = [{**vector, "setup": own["types"]} for vector in own["vectors"]]
    beside = next((parent / SHARED for parent in Path(__file__).parents if (parent / SHARED).is_file()), None)
    return found + (json.loads(beside.read_text()) if beside else [])
