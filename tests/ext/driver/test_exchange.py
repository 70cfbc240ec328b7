"""Steps of a request and what is called at its end: what one gets wrong leaves nobody without an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rowcall.ext.driver.exchange import Exchange, Runner


class Told:
    """What is told, in its order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.runner = Runner(lambda _exchange, _awaitable: None, self.fail)

    def fail(self, _exchange: Exchange, error: BaseException) -> None:
        self.told.append(f"failed: {error}")

    def ending(self, name: str, *, broken: bool = False) -> Callable[[Exchange, Exception | None], None]:
        def end(_exchange: Exchange, error: Exception | None) -> None:
            self.told.append(f"{name}: {error}")
            if broken:
                raise RuntimeError(f"{name} broke")

        return end

    def step(self, error: Exception | None) -> Callable[[Exchange], None]:
        def run(exchange: Exchange) -> None:
            exchange.at_end(self.ending("one", broken=True))
            exchange.at_end(self.ending("two", broken=True))
            exchange.at_end(self.ending("three"))
            if error is not None:
                raise error

        return run


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, ["one: None", "two: None", "three: None"]),
        (ValueError("bad"), ["one: bad", "two: bad", "three: bad", "failed: bad"]),
    ],
)
def test_an_ending_that_raises_keeps_no_other_from_its_turn_nor_the_client_from_the_error(
    error: Exception | None, told: list[str]
) -> None:
    mine = Told()
    with pytest.raises(RuntimeError, match="one broke"):
        mine.runner.start(Exchange(None, None), (mine.step(error),))
    assert mine.told == told
    assert mine.runner.running == 0
