"""Keys of webhooks."""

from rowcall.core.config.keys import Key, interval, section, text_map

ROWS: tuple[Key, ...] = (
    section("Webhooks", "Webhooks of other services."),
    text_map(
        "Webhooks:Secrets",
        {},
        "Secrets of `verify_webhook` by name. Several ones, of which one has to match, are separated by spaces.",
        secret=True,
    ),
    interval("Webhooks:Lifetime", "7 days", "Time for which received webhooks are recorded, so that none runs twice."),
)
