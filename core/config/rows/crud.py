"""Keys of tables and views as endpoints. Filters that are not set have the values of those in `Service`."""

from rowcall.core.sections.keys import Key, choice, flag, section, text, texts

_P = "Service:CrudSource:"

ROWS: tuple[Key, ...] = (
    section(
        "Service:CrudSource",
        "Tables and views as endpoints. A filter that is null has the value of the filter in Service.",
    ),
    flag(_P + "Enabled", False, "Serve tables and views."),
    text(_P + "SchemaSimilarTo", None, "Serve only tables in schemas whose name is SIMILAR TO this pattern."),
    text(_P + "SchemaNotSimilarTo", None, "Leave out tables in schemas whose name is SIMILAR TO this pattern."),
    texts(_P + "IncludeSchemas", None, "Serve only tables in these schemas."),
    texts(_P + "ExcludeSchemas", None, "Leave out tables in these schemas."),
    text(_P + "NameSimilarTo", None, "Serve only tables whose name is SIMILAR TO this pattern."),
    text(_P + "NameNotSimilarTo", None, "Leave out tables whose name is SIMILAR TO this pattern."),
    texts(_P + "IncludeNames", None, "Serve only these tables."),
    texts(_P + "ExcludeNames", None, "Leave out these tables."),
    choice(
        _P + "CommentsMode",
        "Ignore ParseAll OnlyAnnotated OnlyWithHttpTag",
        "OnlyAnnotated",
        "Which tables become endpoints; the values have the same meaning as in Service:CommentsMode.",
    ),
    texts(
        _P + "CrudTypes",
        ["All"],
        "Operations to offer: All, Select, Update, UpdateReturning, Insert, InsertReturning, "
        "InsertOnConflictDoNothing, InsertOnConflictDoNothingReturning, InsertOnConflictDoUpdate, "
        "InsertOnConflictDoUpdateReturning, Delete, DeleteReturning.",
    ),
    text(
        _P + "ReturningUrlPattern",
        "{0}/returning",
        "Path of operations that return changed rows; {0}: the path of the table.",
    ),
    text(
        _P + "OnConflictDoNothingUrlPattern",
        "{0}/on-conflict-do-nothing",
        "Path of inserts that do not change rows with the same key.",
    ),
    text(
        _P + "OnConflictDoNothingReturningUrlPattern",
        "{0}/on-conflict-do-nothing/returning",
        "Path of these inserts that return the inserted row.",
    ),
    text(
        _P + "OnConflictDoUpdateUrlPattern",
        "{0}/on-conflict-do-update",
        "Path of inserts that change rows with the same key.",
    ),
    text(
        _P + "OnConflictDoUpdateReturningUrlPattern",
        "{0}/on-conflict-do-update/returning",
        "Path of these inserts that return the row.",
    ),
)
