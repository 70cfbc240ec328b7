"""Annotations about other services: proxy, proxy_out (reference 05, 4.2)."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Apply, Draft, Line
from rowcall.core.annotations.rows.exposure import METHODS
from rowcall.core.endpoint.capabilities import Forwarding


def _forward(option: str) -> Apply:
    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: _forwarding(draft, line)})

    return apply


def _forwarding(draft: Draft, line: Line) -> Forwarding:
    """A word that is neither does not count (reference 05, 4.2)."""
    method = None
    url = None
    for word in line.arguments:
        if word.upper() in METHODS:
            method = word.upper()
        elif word.lower().startswith(("http://", "https://", "/")):
            url = word
        else:
            message = (
                f"'{word}' is none of {', '.join(METHODS)}, and no URL that begins with http or /; it does not count"
            )
            draft.warn(line, message)
    return Forwarding(method, url)


ANNOTATIONS = (
    Annotation(
        name="proxy",
        aliases=("proxy", "reverse_proxy"),
        syntax="proxy [GET|PUT|POST|PATCH|DELETE|QUERY] [<URL>]",
        description="Sends the request on to another service, whose answer is the answer; a routine with parameters "
        "for it gets that answer instead. A URL that begins with / means an endpoint of this service.",
        apply=_forward("proxy"),
    ),
    Annotation(
        name="proxy_out",
        aliases=("proxy_out", "forward_proxy"),
        syntax="proxy_out [GET|PUT|POST|PATCH|DELETE|QUERY] [<URL>]",
        description="Sends the result of the routine to another service, whose answer is the answer.",
        apply=_forward("proxy_out"),
    ),
)
