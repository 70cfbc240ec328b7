"""The schema `rowcall` of a database (`rowcall --install`), as the role of the service may use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rowcall.core.text.naming import quote_identifier

RESTRICTED: Mapping[str, frozenset[str]] = {
    "Jobs:Enabled": frozenset(
        {
            *("add_job", "cancel_job", "cancelled_jobs", "count_jobs", "enqueue_due", "fail_job", "finish_job"),
            *(
                "keep_jobs",
                "last_due",
                "list_jobs_of",
                "lock_job",
                "next_job",
                "recover_jobs",
                "release_job",
                "remove_finished_jobs",
            ),
            *(
                "report_job",
                "report_unserved_jobs",
                "show_job",
                "schedules",
                "take_jobs",
                "take_jobs_within",
                "take_of_all_queues",
            ),
        }
    ),
    "Webhooks:Enabled": frozenset(
        {"take_webhooks", "next_webhook", "end_delivery", "remove_webhooks", "count_deliveries"}
    ),
    "Mail:Enabled": frozenset({"take_mail", "next_mail", "end_mail", "fail_mail", "remove_mail", "count_mail"}),
    "Auth:SecondFactor:Enabled": frozenset(
        {
            *("second_factor_of", "begin_second_factor", "try_second_factor", "pass_second_factor"),
            *("set_recovery_codes", "use_recovery_code", "remember_device", "list_devices", "revoke_devices"),
            "remove_second_factor",
        }
    ),
}
"""Functions that a service with this key calls, and that not every role may execute."""
PROTECTED_JOBS = 17
"""Version of the schema since which not every role may take, end and read jobs."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The schema `rowcall` of a database, and what the role of the service may not use in it. version: 0 if the schema
    does not exist. role: of the service. refused: names of functions of the schema that the role may not execute."""

    version: int = 0
    role: str = ""
    refused: frozenset[str] = frozenset()

    def missing_right(self, functions: Iterable[str]) -> str | None:
        """Return what the role lacks to use these functions, with the remedy; None: it may use them."""
        refused = sorted(self.refused.intersection(functions))
        if not refused:
            return None
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        return f"the role {self.role} may not execute rowcall.{refused[0]}{more}: {self.grant}"

    def missing_rights(self, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each configuration key whose functions the role may not execute, with what it lacks.

        keys: such as `Jobs:Enabled`; a key that is not in `RESTRICTED` needs no rights.
        """
        for key in keys:
            right = self.missing_right(RESTRICTED.get(key, ()))
            if right is not None:
                yield key, right

    @property
    def grant(self) -> str:
        """The statement that grants the role all functions of the schema."""
        return f"grant execute on all functions in schema rowcall to {quote_identifier(self.role)}"


NOT_INSTALLED = Installation()
