"""Keys of database statistics as endpoints (operations-6 to operations-8)."""

from rowcall.core.sections.keys import Key, choice, flag, interval, section, text, texts

_P = "Stats:"

ROWS: tuple[Key, ...] = (
    section("Stats", "Statistics of the database."),
    flag(_P + "Enabled", False, "Offer statistics."),
    interval(
        _P + "CacheDuration",
        "5 seconds",
        "Time for which a response is cached; the query string is ignored. null: not cached.",
        nullable=True,
    ),
    text(_P + "RateLimiterPolicy", None, "Rate limit of these paths."),
    text(_P + "ConnectionName", None, "Connection whose statistics are read. null: the main one."),
    flag(_P + "RequireAuthorization", False, "Respond to signed-in users only."),
    texts(_P + "AuthorizedRoles", (), "Respond only to users with one of these roles. Empty: no role is required."),
    choice(_P + "OutputFormat", "html json", "html", "Format of responses, unless `?format=` sets another one."),
    text(_P + "SchemaSimilarTo", None, "Only schemas SIMILAR TO this pattern; sessions are not filtered."),
    text(_P + "RoutinesStatsPath", "/stats/routines", "Calls and times of routines."),
    text(_P + "TablesStatsPath", "/stats/tables", "Sizes and use of tables."),
    text(_P + "IndexesStatsPath", "/stats/indexes", "Use of indexes."),
    text(_P + "ActivityPath", "/stats/activity", "Sessions and what they do."),
)
