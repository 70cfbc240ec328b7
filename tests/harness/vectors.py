"""Values and their JSON text: the project's own vectors and those of the reference.

pg_type, sql: the type, and a statement whose column `v` has the value; pg_text: PostgreSQL's text of it; json (or
`recommended`): the expected text; context: the place; setup: statements that create the types; resolve_nested: whether
composites in composites are resolved, true by default.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Vector = dict[str, Any]

DATA = Path(__file__).parents[1] / "data"


def vectors() -> list[Vector]:
    """Return the project's own vectors and those of the reference, which use the types of the former."""
    own = json.loads((DATA / "serialization.json").read_text(encoding="utf-8"))
    reference: list[Vector] = json.loads((DATA / "reference-serialization.json").read_text(encoding="utf-8"))
    return [{**vector, "setup": own["types"]} for vector in own["vectors"]] + reference
