"""Annotations about webhooks: verify_webhook, publishes."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, keyword_form, split_at_word
from rowcall.core.endpoint.capabilities import Publishing, Webhook, WebhookScheme
from rowcall.core.text.interval import parse_interval

_SCHEMES = {scheme.value: scheme for scheme in WebhookScheme}


def _assign_verify_webhook(draft: Draft, value: str) -> None:
    """Apply `stripe secret payments within 10 minutes`. The secret has the name of the scheme, and the limit is 5
    minutes, unless they are named. Anonymous callers are admitted, unless an earlier line is about authorization.
    Raises `BadValueError` for another form."""
    words, behind = split_at_word(value, "within")
    interval = (behind or "").strip()
    name, *rest = words.split() or [""]
    scheme = _SCHEMES.get(name.lower())
    seconds = parse_interval(interval) if interval else 300.0
    named = len(rest) == 2 and rest[0].lower() == "secret"
    if scheme is None or not seconds or (rest and not named):
        raise BadValueError(
            f"'{value}' is none of: {'|'.join(_SCHEMES)}, stripe secret payments, standard within 10 minutes"
        )
    draft.set(webhook=Webhook(scheme, rest[1].lower() if named else scheme.value, seconds))
    if "requires_authorization" not in draft.changes:
        # The signature authorizes the sender.
        draft.set(requires_authorization=False)


_TOPIC = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


def _assign_publishes(draft: Draft, value: str) -> None:
    """Apply `order.paid key order_id`. Raises `BadValueError` for another form."""
    topic, *rest = value.split() or [""]
    if not _TOPIC.fullmatch(topic) or (rest and (len(rest) != 2 or rest[0].lower() != "key")):
        raise BadValueError(f"'{value}' is none of: order.paid, order.paid key order_id")
    draft.set(publishing=Publishing(topic, rest[1] if rest else None))


ANNOTATIONS = (
    Annotation(
        name="publishes",
        aliases=("publishes",),
        syntax="publishes <topic> [key <name>]",
        description="The result is published to the subscribers of the topic, in the transaction of the routine. "
        "Messages with the same value of `key`, a column or member of the result, are delivered in order.",
        apply=keyword_form(_assign_publishes),
        assign=_assign_publishes,
        minimum_words=2,
        maximum_words=4,
    ),
    Annotation(
        name="verify_webhook",
        aliases=("verify_webhook",),
        syntax="verify_webhook standard|stripe|github|slack|shopify [secret <name>] [within <interval>]",
        description="Only webhooks with a valid signature over their body are accepted, which is verified with a "
        "secret of Webhooks:Secrets. Old ones are refused, and a repeated one takes effect once. Callers need not be "
        "signed in, unless the comment says so.",
        apply=keyword_form(_assign_verify_webhook),
        assign=_assign_verify_webhook,
        minimum_words=2,
    ),
)
