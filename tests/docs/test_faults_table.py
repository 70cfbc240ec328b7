"""Each row of the table of faults in docs/operations.md has its tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATABASE = "tests/http/test_faults_database.py"
WORKERS = "tests/http/test_faults_workers.py"
LIMITS = "tests/http/test_faults_limits.py"
SCHEMA = "tests/http/test_faults_schema.py"
KEYS = "tests/http/test_faults_keys.py"
IDLE = "tests/http/test_faults_idle.py"
HANG = "tests/drills/test_hanging_database.py"
NEIGHBOURS = "tests/drills/test_slow_neighbours.py"
DESCRIPTORS = "tests/drills/test_descriptors.py"

TESTED = {
    "A backend is killed or terminated": (
        (DATABASE, "test_every_request_gets_a_response_if_backends_are_killed"),
        (DATABASE, "test_read_only_requests_survive_a_killed_backend"),
    ),
    "The database is stopped, or fails over": (
        (DATABASE, "test_service_recovers_after_a_database_restart_under_load"),
        (DATABASE, "test_unreachable_database_gets_503_with_retry_after"),
    ),
    "The database hangs: it accepts connections and says nothing": (
        (HANG, "test_a_hanging_server_leaks_no_connections"),
        (HANG, "test_a_request_to_a_hanging_server_ends_within_its_time_limit"),
        (HANG, "test_the_service_recovers_when_the_server_resumes"),
    ),
    "Some backends hang and cannot be ended": ((HANG, "test_sessions_of_hanging_backends_count_until_they_end"),),
    "A table is locked": (
        (NEIGHBOURS, "test_a_locked_table_does_not_stop_other_reads"),
        (NEIGHBOURS, "test_the_time_limit_of_a_request_begins_with_it"),
    ),
    "A client leaves while its query runs": (
        (LIMITS, "test_query_of_a_disconnected_client_is_cancelled"),
        (NEIGHBOURS, "test_the_query_of_a_disconnected_client_is_cancelled_on_a_shared_connection"),
        (NEIGHBOURS, "test_requests_behind_a_query_of_a_disconnected_client_are_served"),
    ),
    "A function changes its result, or is dropped": (
        (SCHEMA, "test_changed_return_type_is_never_rendered_with_the_old_shape"),
        (SCHEMA, "test_dropped_endpoint_never_gets_500"),
    ),
    "A worker dies": (
        (WORKERS, "test_killed_worker_is_replaced"),
        (WORKERS, "test_repeatedly_exiting_worker_is_restarted_with_growing_delay"),
    ),
    "The supervisor is killed": ((WORKERS, "test_workers_do_not_outlive_a_killed_supervisor"),),
    "A key file is damaged": ((KEYS, "test_damaged_key_file_does_not_affect_other_keys"),),
    "The clock steps": (
        (KEYS, "test_sign_in_works_after_clock_steps"),
        (KEYS, "test_token_from_the_future_is_refused_even_if_cached"),
    ),
    "More clients than descriptors": (
        (DESCRIPTORS, "test_more_clients_than_descriptors_are_served"),
        (DESCRIPTORS, "test_a_stream_without_a_free_descriptor_is_503"),
    ),
    "Clients that send nothing, or stop half-way": ((IDLE, "test_idle_connection_is_closed"),),
    "More requests than the database can take": (
        (LIMITS, "test_full_queue_gets_503_with_retry_after_at_once"),
        (LIMITS, "test_waiting_for_a_connection_is_bounded"),
    ),
}


def rows() -> list[str]:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    table = page.partition("## When something fails")[2].partition("\n## ")[0]
    return [cell.strip() for cell in re.findall(r"^\|([^|]+)\|", table, re.MULTILINE)][2:]


def test_every_row_of_the_faults_table_is_tested() -> None:
    assert rows() == list(TESTED)


@pytest.mark.parametrize(("file", "name"), sorted({test for tests in TESTED.values() for test in tests}))
def test_tests_of_the_faults_table_exist(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
