"""Keys of webhooks, received and sent."""

from rowcall.core.sections.keys import Key, flag, integer, interval, section, text, text_map, texts

_ONE = "Webhooks:Subscribers:<subscriber>:"

ROWS: tuple[Key, ...] = (
    section("Webhooks", "Webhooks of other services, and those that this service sends."),
    text_map(
        "Webhooks:Secrets",
        {},
        "Secrets of `verify_webhook` by name. Several ones, of which one has to match, are separated by spaces.",
        secret=True,
    ),
    interval("Webhooks:Lifetime", "7 days", "Time for which received webhooks are recorded, so that none runs twice."),
    flag("Webhooks:Enabled", False, "Deliver the messages of `rowcall.publish` and `publishes` in this service."),
    integer("Webhooks:Concurrency", 16, "Deliveries of a worker at the same time.", minimum=1),
    interval("Webhooks:Timeout", "20 seconds", "Time within which a subscriber has to respond."),
    interval("Webhooks:Backoff", "5 seconds", "Time before the second attempt; tripled for each further one, ± 25 %."),
    interval("Webhooks:LongestPause", "6 hours", "Longest time between two attempts."),
    interval("Webhooks:GiveUpAfter", "3 days", "Time after which a delivery is not attempted any more, but dead."),
    interval("Webhooks:Retention", "7 days", "Time for which delivered messages are stored, to be delivered again."),
    section("Webhooks:Subscribers", "Subscribers of messages, by name."),
    text(_ONE + "Url", "", "Address to which messages are posted."),
    text(
        _ONE + "Secret",
        "",
        "Secret of the signature: `whsec_` and base64, or an Ed25519 key `whsk_` and base64. Each of several ones, "
        "separated by spaces, signs.",
        secret=True,
    ),
    texts(_ONE + "Topics", ("*",), "Topics of the subscriber: `order.paid`, `order.*`; `*`: all."),
)
