"""Annotations about webhooks: verify_webhook."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line
from rowcall.core.endpoint.capabilities import Webhook, WebhookScheme
from rowcall.core.text.interval import parse_interval

_SCHEMES = {scheme.value: scheme for scheme in WebhookScheme}


def _verify_webhook(draft: Draft, line: Line) -> None:
    _assign_verify_webhook(draft, line.joined)


def _assign_verify_webhook(draft: Draft, value: str) -> None:
    words, _, interval = f"{value} ".partition(" within ")
    name, *rest = words.split() or [""]
    scheme = _SCHEMES.get(name.lower())
    seconds = parse_interval(interval) if interval.strip() else 300.0
    named = len(rest) == 2 and rest[0].lower() == "secret"
    if scheme is None or not seconds or (rest and not named):
        raise BadValueError(
            f"'{value}' is none of: {'|'.join(_SCHEMES)}, stripe secret payments, standard within 10 minutes"
        )
    draft.set(webhook=Webhook(scheme, rest[1].lower() if named else scheme.value, seconds))
    if "requires_authorization" not in draft.changes:
        # The signature authorizes the sender.
        draft.set(requires_authorization=False)


ANNOTATIONS = (
    Annotation(
        name="verify_webhook",
        aliases=("verify_webhook",),
        syntax="verify_webhook standard|stripe|github|slack|shopify [secret <name>] [within <interval>]",
        description="Only webhooks with a valid signature over their body are accepted, which is verified with a "
        "secret of Webhooks:Secrets. Old ones are refused, and a repeated one takes effect once. Callers need not be "
        "signed in, unless the comment says so.",
        apply=_verify_webhook,
        assign=_assign_verify_webhook,
        minimum_words=2,
    ),
)
