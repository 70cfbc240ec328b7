"""What the supervisor reads for PostgREST's interface, and sends to the workers with the schema snapshot."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.schema import Schema


@dataclass(frozen=True, slots=True)
class PostgRestCatalogue:
    """One reading. options: with the configuration of the database. roles: settings of `ALTER ROLE … SET` by role."""

    options: PostgRestOptions
    schema: Schema
    roles: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    timeout: str = "0"
    """`statement_timeout` of requests whose role and function set none: that of the login role, 0 for no limit."""
    load_seconds: float = field(default=0.0, compare=False)
    """Time of the reading, in seconds."""

    def object_at(self, path: str) -> str | None:
        """Return the relation or function of an exposed schema that a path addresses, as `api.item`; None: neither."""
        base = self.options.path.rstrip("/")
        if not path.startswith(f"{base}/"):
            return None
        name = path[len(base) + 1 :]
        known: Container[tuple[str, str]] = self.schema.relations
        if name.startswith("rpc/"):
            name, known = name.removeprefix("rpc/"), self.schema.functions
        schema = next((schema for schema in self.options.schemas if (schema, name) in known), None)
        return None if schema is None else f"{schema}.{name}"
