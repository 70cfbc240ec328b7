"""Keys of a worker's threads. Parallelism comes from worker processes (`HttpServer:Workers`); in the established system
it comes from threads."""

from rowcall.core.sections.keys import Key, integer, section

ROWS: tuple[Key, ...] = (
    section("ThreadPool", "Threads of each worker; `HttpServer:Workers` sets the number of processes."),
    integer("ThreadPool:MinWorkerThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MinCompletionPortThreads", None, "Accepted; no effect here."),
    integer("ThreadPool:MaxWorkerThreads", None, "Maximum number of threads of a worker for blocking work.", minimum=1),
    integer("ThreadPool:MaxCompletionPortThreads", None, "Second name of HttpServer:Threads.", minimum=1),
)
