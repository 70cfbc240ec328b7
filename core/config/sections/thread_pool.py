"""Keys of a worker's threads. Parallelism comes from worker processes (`HttpServer:Workers`); in the established system
it comes from threads."""

from __future__ import annotations

from rowcall.core.sections.declaration import integer, section


@section("ThreadPool", "Threads of each worker; `HttpServer:Workers` sets the number of processes.")
class ThreadPool:
    min_worker_threads = integer("MinWorkerThreads", None, "Accepted; no effect here.")
    min_completion_port_threads = integer("MinCompletionPortThreads", None, "Accepted; no effect here.")
    blocking: int | None = integer(
        "MaxWorkerThreads", None, "Maximum number of threads of a worker for blocking work.", minimum=1
    )
    threads: int | None = integer("MaxCompletionPortThreads", None, "Second name of HttpServer:Threads.", minimum=1)
