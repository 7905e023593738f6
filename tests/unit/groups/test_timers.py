"""Timers: what is due comes up, in order, however often it was moved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.outcome import Now, Outcome
from ottla.groups.timers import NEVER, Timer, Timers


def nothing(now: Now, outcome: Outcome) -> None:
    pass


def due(timers: Timers, now: int) -> list[Timer]:
    came = []
    while (timer := timers.due(now)) is not None:
        came.append(timer)
    return came


def test_a_timer_is_due_at_its_time_and_once() -> None:
    timers = Timers()
    timer = timers.start(10, nothing)
    assert timers.deadline() == 10
    assert due(timers, 9) == []
    assert due(timers, 10) == [timer]
    assert due(timers, 1_000) == []
    assert timers.deadline() is None


def test_a_timer_that_was_put_off_comes_up_at_its_new_time() -> None:
    timers = Timers()
    timer = timers.start(10, nothing)
    timers.move(timer, 50)
    assert due(timers, 49) == []
    assert timers.deadline() == 50
    assert due(timers, 50) == [timer]


def test_a_timer_that_was_brought_forward_comes_up_early() -> None:
    timers = Timers()
    timer = timers.start(300, nothing)
    timers.move(timer, 10)
    assert timers.deadline() == 10
    assert due(timers, 10) == [timer]
    assert due(timers, 300) == []


def test_a_cancelled_timer_does_not_come_up_and_cannot_be_moved_back_to_life() -> None:
    timers = Timers()
    timer = timers.start(10, nothing)
    timers.cancel(timer)
    timers.cancel(timer)
    timers.cancel(None)
    timers.move(timer, 20)
    assert timers.deadline() is None
    assert due(timers, 100) == []


def test_timers_that_came_up_are_not_moved() -> None:
    timers = Timers()
    timer = timers.start(10, nothing)
    assert due(timers, 10) == [timer]
    timers.move(timer, 20)
    assert timers.deadline() is None


def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers()
    kept = timers.start(5, nothing)
    for at in range(10_000):
        timers.cancel(timers.start(1_000 + at, nothing))
    assert len(timers._heap) < 200
    assert due(timers, 100_000) == [kept]


def test_heartbeats_add_nothing_to_the_heap() -> None:
    timers = Timers()
    timer = timers.start(10, nothing)
    for at in range(11, 1_000):
        timers.move(timer, at)
    assert len(timers._heap) == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(0, 100)),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
        st.tuples(st.just("move"), st.integers(0, 20), st.integers(0, 100)),
        st.tuples(st.just("pass"), st.integers(0, 30)),
    )
)


@given(STEPS)
def test_timers_agree_with_a_plain_list(steps: list[tuple[str, int] | tuple[str, int, int]]) -> None:
    timers, now = Timers(), 0
    started: list[Timer] = []
    model: dict[int, int] = {}  # number of a timer -> its time
    for step in steps:
        number = step[1] if step[1] < len(started) else -1
        if step[0] == "start":
            model[len(started)] = now + step[1]
            started.append(timers.start(now + step[1], nothing))
        elif step[0] == "cancel" and number >= 0:
            model.pop(number, None)
            timers.cancel(started[number])
        elif step[0] == "move" and number >= 0:
            at = now + step[2]  # type: ignore[misc]
            if number in model:
                model[number] = at
            timers.move(started[number], at)
        elif step[0] == "pass":
            now += step[1]
            expected = {number for number, at in model.items() if at <= now}
            assert {started.index(timer) for timer in due(timers, now)} == expected
            for over in expected:
                del model[over]
        earliest = timers.deadline()
        assert earliest is None if not model else earliest is not None and earliest <= min(model.values())
    assert all(timer.at == NEVER for number, timer in enumerate(started) if number not in model)
