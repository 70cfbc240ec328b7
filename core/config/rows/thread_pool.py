"""Threads of a worker. Worker processes (`HttpServer:Workers`) do what the established system does with threads."""

from rowcall.core.config.keys import Key, integer, section

ROWS: tuple[Key, ...] = (
    section("ThreadPool", "Threads of each worker; `HttpServer:Workers` says how many processes serve."),
    integer("ThreadPool:MinWorkerThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MinCompletionPortThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MaxWorkerThreads", None, "Most threads of a worker for work that would block it."),
    integer("ThreadPool:MaxCompletionPortThreads", None, "Second name of HttpServer:Threads."),
)
