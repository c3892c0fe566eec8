"""Work side by side on a CPU."""

import gc
import os
import signal
import threading
import time
import weakref
from contextlib import suppress
from contextvars import ContextVar

import pytest
import torch

from ixsearch import kernels
from ixsearch.runtime import NativeEngine, pair_effects
from ixsearch.runtime.crew import AT_ONCE, Crew, crew_size

from .test_held import EVERY, documents

CPU = torch.device("cpu")
somewhere = ContextVar("somewhere", default="nowhere")


@pytest.fixture
def threads():
    """Sets how many there are, until the test is over."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize(("there", "size", "each"), [(1, 1, 1), (2, 2, 1), (9, AT_ONCE, 2)])
def test_workers_share_the_threads(threads, there, size, each):
    threads(there)
    assert crew_size(CPU) == size
    with Crew(CPU) as crew:
        assert set(crew.map(lambda _: torch.get_num_threads(), range(20))) == {each}
    assert torch.get_num_threads() == there


def test_pieces_are_done_at_the_same_time(threads):
    """Each waits for the other."""
    threads(2)
    meeting = threading.Barrier(2, timeout=20)
    with Crew(CPU) as crew:
        assert sorted(crew.map(lambda _: meeting.wait(), range(2))) == [0, 1]


def test_results_are_in_order_and_modes_are_the_callers(threads):
    threads(2)
    token = somewhere.set("here")
    with Crew(CPU) as crew, torch.inference_mode():
        found = crew.map(
            lambda n: (n, somewhere.get(), torch.is_inference_mode_enabled()), [*"abc"]
        )
    assert found == [(letter, "here", True) for letter in "abc"]
    with Crew(CPU) as crew, torch.no_grad():
        assert crew.map(lambda _: torch.is_grad_enabled(), range(3)) == [False] * 3
    somewhere.reset(token)


def test_an_error_keeps_nothing_that_was_done(threads):
    """Whoever tries again with less has the memory."""
    threads(2)
    made = []

    class Large:
        pass

    def work(number):
        large = Large()
        made.append(weakref.ref(large))
        if number == 4:
            raise MemoryError
        return large

    def run():
        with Crew(CPU) as crew:
            crew.map(work, range(5))

    gc.disable()
    try:
        with suppress(MemoryError):
            run()
        assert len(made) == 5 and not any(one() for one in made)
    finally:
        gc.enable()


def test_the_interpreter_of_triton_has_no_crew(threads):
    threads(2)
    with kernels.backend("triton"):
        assert crew_size(CPU) == 1
    with kernels.backend("torch"):
        assert crew_size(CPU) == 2


def test_effects_of_documents_that_do_not_fit_together(threads, deepseek_folder, monkeypatch):
    """They are found one by one, with the same draws."""
    threads(2)
    engine = NativeEngine.load(deepseek_folder, device="cpu")
    want = engine.pair_effects(documents(), 2, 3).effects_NVLL
    lock, through = threading.Lock(), pair_effects._WayBack.through

    def alone(way, layer):
        if not lock.acquire(blocking=False):
            raise MemoryError("two graphs do not fit")
        try:
            time.sleep(0.01)
            return through(way, layer)
        finally:
            lock.release()

    monkeypatch.setattr(pair_effects._WayBack, "through", alone)
    got = engine.pair_effects(documents(), 2, 3).effects_NVLL
    assert abs(got - want).max() <= 1e-4 * abs(want).max()


def test_an_error_is_raised_and_what_waits_is_let_go(threads):
    threads(2)
    begun = []

    def fail(number):
        begun.append(number)
        time.sleep(0.01)
        raise MemoryError(number)

    with pytest.raises(MemoryError, match=r"^0$"), Crew(CPU) as crew:
        crew.map(fail, range(1000))
    assert len(begun) < 100
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_met_between_pieces(threads, number):
    """In the middle of a wait the exception would leave threading's locks in disorder."""
    threads(2)
    before = [signal.signal(number, signal.default_int_handler), signal.getsignal(signal.SIGINT)]
    begun = []

    def work(piece):
        begun.append(piece)
        if piece == 0:
            os.kill(os.getpid(), number)
        time.sleep(0.01)

    try:
        with pytest.raises(KeyboardInterrupt), Crew(CPU) as crew:
            crew.map(work, range(1000))
        assert signal.getsignal(number) is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is before[1]
    finally:
        signal.signal(number, before[0])
    assert len(begun) < 100 and torch.get_num_threads() == 2


def test_no_crew_on_other_devices(threads):
    threads(2)
    with Crew(torch.device("meta")) as crew:
        assert crew.size == 1
        assert crew.map(lambda _: threading.current_thread().name, [0]) == ["MainThread"]


def test_scores_are_those_of_one_thread(deepseek_folder, threads):
    """Bit for bit: every worker has one thread too."""
    texts = documents()
    threads(1)
    alone = NativeEngine.load(deepseek_folder, device="cpu").score(texts, EVERY)
    threads(2)
    engine = NativeEngine.load(deepseek_folder, device="cpu")
    engine.keep_near(EVERY[5:7])
    assert engine.score(texts, EVERY[:9]) == alone[:9]
    assert engine.score(texts, EVERY) == alone


def test_effects_are_those_of_one_thread(deepseek_folder, threads):
    """Draws are made in the order of the documents, however many go back at once."""
    threads(1)
    alone = NativeEngine.load(deepseek_folder, device="cpu").pair_effects(documents(), 2, 3)
    threads(2)
    engine = NativeEngine.load(deepseek_folder, device="cpu")
    together = engine.pair_effects(documents(), 2, 3)
    assert together.tokens == alone.tokens and alone.effects_NVLL.any()
    torch.testing.assert_close(
        torch.from_numpy(together.effects_NVLL), torch.from_numpy(alone.effects_NVLL)
    )
