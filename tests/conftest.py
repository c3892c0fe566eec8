"""One thread a test process: the models are tiny, and more threads only wait for each other."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    import torch

    torch.set_num_threads(1)
