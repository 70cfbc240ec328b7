"""Keys of deadlines: how long the client waits for a response."""

from rowcall.core.sections.keys import Key, interval, section, texts

_P = "Service:Deadlines:"

ROWS: tuple[Key, ...] = (
    section(
        "Service:Deadlines",
        "Time limit of requests, including waiting and outgoing requests. After it the request gets 504, and its "
        "running work is cancelled.",
    ),
    interval(_P + "Default", None, "Deadline of endpoints without the annotation `deadline`. null: none."),
    texts(
        _P + "RequestHeaders",
        (),
        "Headers with which clients may shorten the deadline: `Request-Timeout`, `Deadline`, `grpc-timeout`, "
        "`X-Envoy-Expected-Rq-Timeout-Ms`. The first of them in a request applies. None of them extends a deadline.",
    ),
    interval(_P + "Shortest", "10 milliseconds", "Minimum deadline of a client; shorter ones are raised to it."),
)
