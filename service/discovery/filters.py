"""Filters of discovery; all conditions must match (discovery-4, discovery-6 to discovery-9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Parameters = dict[str, str | list[str] | bool | None]


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Filter by schema and name. None, empty or blank: no condition."""

    schema_similar_to: str | None = None
    schema_not_similar_to: str | None = None
    include_schemas: tuple[str, ...] | None = None
    exclude_schemas: tuple[str, ...] | None = None
    name_similar_to: str | None = None
    name_not_similar_to: str | None = None
    include_names: tuple[str, ...] | None = None
    exclude_names: tuple[str, ...] | None = None
    trusted_owners: tuple[str, ...] = ()
    """Roles whose objects are published in any schema; `*` means all roles (`service.discovery.trust`)."""
    everything: bool = False
    """Objects without an annotation become endpoints too."""

    def parameters(self) -> Parameters:
        """Return the parameters of the queries by name; conditions that are off are NULL."""
        return {
            "schema_similar_to": _pattern(self.schema_similar_to),
            "schema_not_similar_to": _pattern(self.schema_not_similar_to),
            "include_schemas": _nonblank_names(self.include_schemas),
            "exclude_schemas": _nonblank_names(self.exclude_schemas),
            "name_similar_to": _pattern(self.name_similar_to),
            "name_not_similar_to": _pattern(self.name_not_similar_to),
            "include_names": _nonblank_names(self.include_names),
            "exclude_names": _nonblank_names(self.exclude_names),
        }


@dataclass(frozen=True, slots=True)
class RoutineFilter(NameFilter):
    """Filter of functions and procedures, also by language."""

    include_languages: tuple[str, ...] | None = None
    exclude_languages: tuple[str, ...] | None = None
    """None: `c` and `internal`, the languages of most extensions."""

    def parameters(self) -> Parameters:
        excluded = ("c", "internal") if self.exclude_languages is None else self.exclude_languages
        return {
            **NameFilter.parameters(self),
            "include_languages": _nonblank_names(language.lower() for language in self.include_languages or ()),
            "exclude_languages": _nonblank_names(language.lower() for language in excluded),
        }


@dataclass(frozen=True, slots=True)
class TableFilter(NameFilter):
    """Filter of tables, views and other relations that are read like tables."""

    commented: bool = True
    """Only relations with a comment: others do not become endpoints, so their columns need not be read."""

    def parameters(self) -> Parameters:
        return {**NameFilter.parameters(self), "commented": self.commented}


def _pattern(text: str | None) -> str | None:
    """Return a pattern of a filter (for SIMILAR TO) for the query. None if it is missing or blank: the query then has
    no such condition."""
    return text if text and text.strip() else None


def _nonblank_names(names: Iterable[str] | None) -> list[str] | None:
    """Return the names that are not blank; None if there are none, which is no condition."""
    return [name for name in names or () if name.strip()] or None
