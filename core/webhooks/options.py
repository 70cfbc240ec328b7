"""Options of the delivery of published messages."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.endpoint.capabilities import WebhookScheme
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.sections.declaration import flag, integer, interval, part, section, text, text_map, texts
from rowcall.core.sections.errors import ConfigError
from rowcall.core.webhooks.signatures import SecretError, check_secrets


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _or_all(topics: tuple[str, ...]) -> tuple[str, ...]:
    return topics or ("*",)


@section("Webhooks:Subscribers:<subscriber>")
class Subscriber:
    """A subscriber of published messages in the configuration. secrets: each of them signs; there is at least one.
    Construction raises ConfigError for an invalid URL or secret."""

    name: str

    url: str = text("Url", "", "Address to which messages are posted.")
    secrets: tuple[str, ...] = text(
        "Secret",
        "",
        "Secret of the signature: `whsec_` and base64, or an Ed25519 key `whsk_` and base64. Each of several "
        "ones, separated by spaces, signs.",
        secret=True,
        convert=_words,
    )
    topics: tuple[str, ...] = texts(
        "Topics", ("*",), "Topics of the subscriber: `order.paid`, `order.*`; `*`: all.", convert=_or_all
    )

    def __post_init__(self) -> None:
        path = f"Webhooks:Subscribers:{self.name}:"
        try:
            read_address(self.url)
        except BadUrlError as error:
            raise ConfigError(f"{path}Url: {error}") from None
        try:
            check_secrets(WebhookScheme.STANDARD, " ".join(self.secrets), signs=True)
        except SecretError as error:
            raise ConfigError(f"{path}Secret {error}") from None


@section("Webhooks:Subscribers", "Subscribers of messages, by name.")
class Subscribers:
    """The keys of the section with all subscribers."""

    subscriber = part(Subscriber)


@section("Webhooks")
class ReceivedWebhooks:
    secrets: Mapping[str, str | None] = text_map(
        "Secrets",
        {},
        "Secrets of `verify_webhook` by name. Several ones, of which one has to match, are separated by spaces.",
        secret=True,
    )
    lifetime: float = interval(
        "Lifetime", "7 days", "Time for which received webhooks are recorded, so that none runs twice."
    )


@section("Webhooks", "Webhooks of other services, and those that this service sends.")
class DeliveryOptions:
    """Options of the delivery of webhooks. Times in seconds."""

    received = part(ReceivedWebhooks)
    enabled: bool = flag("Enabled", False, "Deliver the messages of `rowcall.publish` and `publishes` in this service.")
    concurrency: int = integer("Concurrency", 16, "Deliveries of a worker at the same time.", minimum=1)
    timeout: float = interval("Timeout", "20 seconds", "Time within which a subscriber has to respond.")
    backoff: float = interval(
        "Backoff", "5 seconds", "Time before the second attempt; tripled for each further one, ± 25 %."
    )
    longest_pause: float = interval("LongestPause", "6 hours", "Longest time between two attempts.")
    give_up: float = interval(
        "GiveUpAfter", "3 days", "Time after which a delivery is not attempted any more, but dead."
    )
    retention: float = interval(
        "Retention", "7 days", "Time for which delivered messages are stored, to be delivered again."
    )
    subscriber_keys = part(Subscribers)
    subscribers: tuple[Subscriber, ...] = ()
