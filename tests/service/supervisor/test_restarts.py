"""When a worker that has died is replaced."""

from __future__ import annotations

from rowcall.service.supervisor.processes.restarts import MANY, QUICK, RestartDelay, cause


def test_a_single_exit_is_restarted_immediately() -> None:
    assert RestartDelay().pause_after(0.1) == 0
    assert RestartDelay().pause_after(1000) == 0


def test_repeated_exits_are_restarted_with_growing_limited_delays() -> None:
    deaths = RestartDelay()
    pauses = [deaths.pause_after(0.1) for _ in range(30)]
    # Each is a random half to whole of twice the one before.
    assert all(0.05 * 2**number <= 2 * pause <= 0.2 * 2**number for number, pause in enumerate(pauses[1:6], 1))
    assert all(2.5 <= pause <= 5 for pause in pauses[10:])


def test_a_long_lived_worker_resets_the_delay() -> None:
    deaths = RestartDelay()
    for _ in range(10):
        deaths.pause_after(0.1)
    assert [deaths.pause_after(QUICK), deaths.pause_after(0.1)] == [0, 0]


def test_systematic_exits_are_reported_once() -> None:
    deaths = RestartDelay()
    result = []
    for _ in range(3 * MANY):
        deaths.pause_after(0.1)
        result.append(deaths.look_systematic)
    assert result == [False] * (MANY - 1) + [True] + [False] * (2 * MANY)


def test_the_cause_is_a_signal_an_error_or_both() -> None:
    assert cause(-11, None) == "SIGSEGV"
    assert cause(-9, "lost\nTraceback").startswith(
        "SIGKILL; unless an operator has sent it, the system was out of memory"
    )
    assert cause(-9, "lost\nTraceback").endswith("; its last error: lost")
    assert cause(1, "  \x1b[31mred") == "its last error: \\x1b[31mred"
    assert cause(3, " ") == "it has logged no error"
