"""Annotations about other services: proxy, proxy_out, hedge (proxies-3)."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Apply, BadValueError, Draft, Line, keyword_form
from rowcall.core.annotations.rows.exposure import METHODS
from rowcall.core.endpoint.capabilities import Forwarding
from rowcall.core.text.interval import parse_interval


def _forward(option: str) -> Apply:
    """Return a function that applies `proxy` or `proxy_out`. option: field of `Options`."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: _parse_forwarding(draft, line)})

    return apply


def _parse_forwarding(draft: Draft, line: Line) -> Forwarding:
    """Return the method and the URL of the line, each None if it is missing. Other words are ignored, with a warning
    (proxies-3)."""
    method = None
    url = None
    for word in line.arguments:
        if word.upper() in METHODS:
            method = word.upper()
        elif word.lower().startswith(("http://", "https://", "/")):
            url = word
        else:
            message = f"'{word}' is none of {', '.join(METHODS)}, and no URL that begins with http or /; it is ignored"
            draft.warn(line, message)
    return Forwarding(method, url)


def _assign_hedge(draft: Draft, value: str) -> None:
    seconds = parse_interval(value)
    if seconds is None:
        raise BadValueError(f"'{value}' is not an interval; the request is sent once")
    draft.set(hedge=seconds)


ANNOTATIONS = (
    Annotation(
        name="proxy",
        aliases=("proxy", "reverse_proxy"),
        syntax="proxy [GET|PUT|POST|PATCH|DELETE|QUERY] [<URL>]",
        description="Forwards the request to another service and returns its response; if the routine has parameters "
        "for the response, it runs and receives that response instead. A URL that begins with / is an endpoint of "
        "this service.",
        apply=_forward("proxy"),
    ),
    Annotation(
        name="proxy_out",
        aliases=("proxy_out", "forward_proxy"),
        syntax="proxy_out [GET|PUT|POST|PATCH|DELETE|QUERY] [<URL>]",
        description="Sends the result of the routine to another service and returns the response of that service.",
        apply=_forward("proxy_out"),
    ),
    Annotation(
        name="hedge",
        aliases=("hedge",),
        syntax="hedge <interval>",
        description="With `proxy`: if there is no response after this time, the same request is sent once more; the "
        "first response is used, and the other request is cancelled. For GET, HEAD, PUT, DELETE and QUERY, which have "
        "the same effect if they arrive twice, with a body of at most 64 KiB.",
        apply=keyword_form(_assign_hedge),
        assign=_assign_hedge,
        minimum_words=2,
    ),
)
