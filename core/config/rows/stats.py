"""Keys of database statistics as endpoints (operations-6 to operations-8)."""

from rowcall.core.config.keys import Key, choice, flag, interval, section, text, texts

_P = "Stats:"

ROWS: tuple[Key, ...] = (
    section("Stats", "Statistics of the database."),
    flag(_P + "Enabled", False, "Offer them."),
    interval(
        _P + "CacheDuration",
        "5 seconds",
        "How long an answer is kept, whatever its query string. null keeps none.",
        nullable=True,
    ),
    text(_P + "RateLimiterPolicy", None, "Rate limit of these paths."),
    text(_P + "ConnectionName", None, "Connection that is asked. null is the main one."),
    flag(_P + "RequireAuthorization", False, "Answer signed-in users only."),
    texts(_P + "AuthorizedRoles", (), "Answer users in one of these roles only. A list makes signing in needed."),
    choice(_P + "OutputFormat", "html json", "html", "How they are shown, unless `?format=` asks otherwise."),
    text(_P + "SchemaSimilarTo", None, "Only schemas SIMILAR TO this pattern; sessions are not filtered."),
    text(_P + "RoutinesStatsPath", "/stats/routines", "Calls and times of routines."),
    text(_P + "TablesStatsPath", "/stats/tables", "Sizes and use of tables."),
    text(_P + "IndexesStatsPath", "/stats/indexes", "Use of indexes."),
    text(_P + "ActivityPath", "/stats/activity", "Sessions and what they do."),
)
