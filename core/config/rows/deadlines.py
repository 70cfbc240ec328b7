"""Keys of deadlines: how long the client waits for a response."""

from rowcall.core.config.keys import Key, interval, section, texts

_P = "Service:Deadlines:"

ROWS: tuple[Key, ...] = (
    section(
        "Service:Deadlines",
        "How long a request may take with everything that it does, waiting and outgoing requests included. Then it is "
        "answered 504, and what still runs for it is cancelled.",
    ),
    interval(_P + "Default", None, "For endpoints without the annotation `deadline`. null sets none."),
    texts(
        _P + "RequestHeaders",
        (),
        "Headers in which clients may ask for less: `Request-Timeout`, `Deadline`, `grpc-timeout`, "
        "`X-Envoy-Expected-Rq-Timeout-Ms`. The first one that a request has counts. None of them lengthens anything.",
    ),
    interval(_P + "Shortest", "10 milliseconds", "What a client may ask for at least; less is taken for this."),
)
