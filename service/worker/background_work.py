"""What a worker does besides requests: runs jobs, delivers webhooks and mail. Each part exists only if it is
configured, and its modules are imported only then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rowcall.service.background import Background
from rowcall.service.database.connector import Connector
from rowcall.service.metrics.meters import job_counter, upstream_meters
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.tracing.request_tracing import outgoing_spans

if TYPE_CHECKING:
    from rowcall.service.accounts.delivering import MailDelivery
    from rowcall.service.jobs.attempt import RunnableJobs
    from rowcall.service.jobs.runner import JobRunner
    from rowcall.service.request.subrequests import Start
    from rowcall.service.webhooks.delivering import Deliveries, Record


class BackgroundWork:
    """The background work of one worker."""

    def __init__(
        self, options: WorkerOptions, host: HostState, start_request: Start, record_delivery: Record | None
    ) -> None:
        """start_request: begins to run the steps of a request. record_delivery: records an attempt to deliver a webhook
        in the audit trail; None: it is not recorded.
        """
        self._jobs: JobRunner | None = None
        if options.jobs is not None and options.jobs.concurrency:
            from rowcall.service.jobs.runner import JobRunner

            self._jobs = JobRunner(
                options.jobs, Connector(options.target), options.auth, start_request, job_counter(options, host)
            )
        self._deliveries: Deliveries | None = None
        if options.deliveries is not None:
            from rowcall.service.webhooks.delivering import Deliveries

            self._deliveries = Deliveries(
                options.deliveries,
                Connector(options.target),
                options.outbound.client,
                upstream_meters(options, host),
                outgoing_spans(options.tracing, host),
                record_delivery,
            )
        self._mail: MailDelivery | None = None
        if options.mail.enabled:
            from rowcall.service.accounts.delivering import MailDelivery

            self._mail = MailDelivery(options.mail, Connector(options.target), counts=options.metrics is not None)

    @property
    def runs_jobs(self) -> bool:
        """Whether this worker runs jobs."""
        return self._jobs is not None

    def gauges(self) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """Yield the gauges of all parts: name, labels, value."""
        return (
            gauge for part in (self._jobs, self._deliveries, self._mail) if part is not None for gauge in part.gauges
        )

    def start(self, background: Background) -> None:
        """Start all parts."""
        if self._jobs is not None:
            background.keep("the job runner", self._jobs.run)
        if self._deliveries is not None:
            background.keep("the delivery of webhooks", self._deliveries.run)
        if self._mail is not None:
            background.keep("the delivery of mail", self._mail.run)

    def serve(self, jobs: RunnableJobs | None) -> None:
        """Run the jobs of a schema snapshot from now on. jobs: None if jobs are off."""
        if self._jobs is not None and jobs is not None:
            self._jobs.serve(jobs)

    def drain(self) -> None:
        """Begin no more jobs, as the service stops."""
        if self._jobs is not None:
            self._jobs.drain()

    async def finish_jobs(self, seconds: float) -> None:
        """Take no further jobs, and wait for running ones, as long as the configuration and `seconds` allow."""
        if self._jobs is not None:
            await self._jobs.finish(seconds)

    async def stop(self) -> None:
        """End all parts; other workers continue their work."""
        if self._jobs is not None:
            await self._jobs.stop()
        if self._deliveries is not None:
            self._deliveries.stop()
        if self._mail is not None:
            self._mail.stop()
