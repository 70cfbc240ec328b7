"""Keys of tables and views as endpoints. Filters that are not set have the values of those in `Service`."""

from __future__ import annotations

from rowcall.core.endpoint.capabilities import CommentsMode, comments_mode_of
from rowcall.core.sections.declaration import choice, flag, section, text, texts


@section(
    "Service:CrudSource", "Tables and views as endpoints. A filter that is null has the value of the filter in Service."
)
class CrudSource:
    enabled: bool = flag("Enabled", False, "Serve tables and views.")
    schema_similar_to: str | None = text(
        "SchemaSimilarTo", None, "Serve only tables in schemas whose name is SIMILAR TO this pattern."
    )
    schema_not_similar_to: str | None = text(
        "SchemaNotSimilarTo", None, "Leave out tables in schemas whose name is SIMILAR TO this pattern."
    )
    include_schemas: tuple[str, ...] | None = texts("IncludeSchemas", None, "Serve only tables in these schemas.")
    exclude_schemas: tuple[str, ...] | None = texts("ExcludeSchemas", None, "Leave out tables in these schemas.")
    name_similar_to: str | None = text(
        "NameSimilarTo", None, "Serve only tables whose name is SIMILAR TO this pattern."
    )
    name_not_similar_to: str | None = text(
        "NameNotSimilarTo", None, "Leave out tables whose name is SIMILAR TO this pattern."
    )
    include_names: tuple[str, ...] | None = texts("IncludeNames", None, "Serve only these tables.")
    exclude_names: tuple[str, ...] | None = texts("ExcludeNames", None, "Leave out these tables.")
    comments_mode: CommentsMode = choice(
        "CommentsMode",
        "Ignore ParseAll OnlyAnnotated OnlyWithHttpTag",
        "OnlyAnnotated",
        "Which tables become endpoints; the values have the same meaning as in Service:CommentsMode.",
        convert=comments_mode_of,
    )
    operations: tuple[str, ...] = texts(
        "CrudTypes",
        ("All",),
        "Operations to offer: All, Select, Update, UpdateReturning, Insert, InsertReturning, "
        "InsertOnConflictDoNothing, InsertOnConflictDoNothingReturning, InsertOnConflictDoUpdate, "
        "InsertOnConflictDoUpdateReturning, Delete, DeleteReturning.",
    )
    returning: str = text(
        "ReturningUrlPattern",
        "{0}/returning",
        "Path of operations that return changed rows; {0}: the path of the table.",
    )
    on_conflict_do_nothing: str = text(
        "OnConflictDoNothingUrlPattern",
        "{0}/on-conflict-do-nothing",
        "Path of inserts that do not change rows with the same key.",
    )
    on_conflict_do_nothing_returning: str = text(
        "OnConflictDoNothingReturningUrlPattern",
        "{0}/on-conflict-do-nothing/returning",
        "Path of these inserts that return the inserted row.",
    )
    on_conflict_do_update: str = text(
        "OnConflictDoUpdateUrlPattern",
        "{0}/on-conflict-do-update",
        "Path of inserts that change rows with the same key.",
    )
    on_conflict_do_update_returning: str = text(
        "OnConflictDoUpdateReturningUrlPattern",
        "{0}/on-conflict-do-update/returning",
        "Path of these inserts that return the row.",
    )
