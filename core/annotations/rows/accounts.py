"""Annotations about accounts: issue_token, consume_token, send_mail."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, keyword_form
from rowcall.core.endpoint.capabilities import ConsumedToken, IssuedToken, Mail
from rowcall.core.text.interval import parse_interval

_PURPOSE = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_ISSUED = re.compile(
    rf"(?P<purpose>{_PURPOSE.pattern}) for (?P<lifetime>.+?)(?: subject (?P<column>[^ ]+))?"
    r"(?: at most (?P<most>[0-9]{1,6})(?: per (?P<period>.+))?)?",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")


def _assign_issue_token(draft: Draft, value: str) -> None:
    """Apply `password_reset for 1 hour subject email at most 5 per 1 day`. The subject is `user_id`, and the period an
    hour, unless they are named; without `at most`, there is no limit. Raises `BadValueError` for another form."""
    match = _ISSUED.fullmatch(" ".join(value.split()))
    if match is not None:
        seconds, period = parse_interval(match["lifetime"]), parse_interval(match["period"] or "1 hour")
        most = None if match["most"] is None else int(match["most"])
        if seconds and period and most != 0:
            draft.set(issued_token=IssuedToken(match["purpose"], seconds, match["column"] or "user_id", most, period))
            return
    raise BadValueError(
        f"'{value}' is none of: password_reset for 1 hour, invitation for 7 days subject email, "
        "password_reset for 1 hour at most 5 per 1 day"
    )


def _assign_consume_token(draft: Draft, value: str) -> None:
    """Apply `invitation from _code`. The parameter is `token` unless it is named. Raises `BadValueError` for another
    form."""
    purpose, *rest = value.split() or [""]
    if not _PURPOSE.fullmatch(purpose) or (rest and (len(rest) != 2 or rest[0].lower() != "from")):
        raise BadValueError(f"'{value}' is none of: password_reset, invitation from _code")
    draft.set(consumed_token=ConsumedToken(purpose, rest[1] if rest else "token"))


def _assign_send_mail(draft: Draft, value: str) -> None:
    """Apply `template mails/welcome`, or an empty text for mail without a template. Raises `BadValueError` for another
    form."""
    words = value.split()
    if words and (len(words) != 2 or words[0].lower() != "template" or not _TEMPLATE.fullmatch(words[1])):
        raise BadValueError(f"'{value}' is none of: template welcome, template mails/welcome")
    draft.set(mail=Mail(words[1] if words else None))


ANNOTATIONS = (
    Annotation(
        name="issue_token",
        aliases=("issue_token",),
        syntax="issue_token <purpose> for <interval> [subject <column>] [at most <number> [per <interval>]]",
        description="Each row of the result gets a new one-time token for its subject, which is the value of a column "
        "(`user_id` by default). The database has only a hash. With `send_mail` the token is a value of the mail, "
        "otherwise it is a member `token` of the response. `at most 5`: a subject gets no more in an hour.",
        apply=keyword_form(_assign_issue_token),
        assign=_assign_issue_token,
        minimum_words=4,
    ),
    Annotation(
        name="consume_token",
        aliases=("consume_token",),
        syntax="consume_token <purpose> [from <parameter>]",
        description="A parameter (`token` by default) has to be a valid token of the purpose, which is used up in the "
        "transaction of the routine; the setting `request.token_subject` has its subject. Other requests are 400.",
        apply=keyword_form(_assign_consume_token),
        assign=_assign_consume_token,
        minimum_words=2,
        maximum_words=4,
    ),
    Annotation(
        name="send_mail",
        aliases=("send_mail",),
        syntax="send_mail [template <template>]",
        description="Each row of the result is a mail, with the columns `to`, `subject`, `text`, `html` and others, "
        "which is sent after the commit. The response is always 202 without a body.",
        apply=keyword_form(_assign_send_mail),
        assign=_assign_send_mail,
        maximum_words=3,
    ),
)
