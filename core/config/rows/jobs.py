"""Keys of jobs: calls of endpoints that run later."""

from rowcall.core.config.keys import Key, flag, integer, interval, section, text, text_map, texts

ROWS: tuple[Key, ...] = (
    section("Jobs", "Calls of endpoints with `job`, which workers run later."),
    flag("Jobs:Enabled", False, "Accept jobs, and run them in the workers of this service."),
    text("Jobs:Path", "/jobs", "Path below which jobs have their addresses."),
    integer("Jobs:Concurrency", 8, "Jobs that a worker runs at the same time. 0: this service only accepts jobs."),
    texts("Jobs:Queues", (), "Queues whose jobs run here. Empty: all."),
    text_map(
        "Jobs:QueueLimits",
        {},
        'How many jobs of a queue run at the same time, in all services together: `{"reports": 2}`.',
    ),
    texts("Jobs:Roles", (), "Roles whose users may see and cancel the jobs of others."),
    interval("Jobs:Retention", "7 days", "Time after which finished jobs are removed."),
    interval("Jobs:LongestPause", "1 hour", "Longest time between two attempts of a job."),
    interval(
        "Jobs:ShutdownTimeout",
        "10 seconds",
        "Longest wait for running jobs when the service stops, at most ConnectionSettings:Pool:ShutdownTimeout. Others "
        "are rolled back and wait again.",
    ),
)
