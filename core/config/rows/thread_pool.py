"""Thread counts of the established system. Here worker processes take their place (`HttpServer:Workers`)."""

from rowcall.core.config.keys import Key, integer, section

ROWS: tuple[Key, ...] = (
    section("ThreadPool", "Accepted for compatibility; `HttpServer:Workers` says how many processes serve."),
    integer("ThreadPool:MinWorkerThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MinCompletionPortThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MaxWorkerThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MaxCompletionPortThreads", None, "Accepted; no effect here."),
)
