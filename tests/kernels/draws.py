"""Random inputs: drawn on the CPU, so the same for all devices, then moved to the default one."""

import torch


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def placed(tensor):
    return tensor.to(torch.get_default_device())


def randn(*shape, seed=0):
    return placed(torch.randn(*shape, generator=generator(seed), device="cpu"))


def randint(low, high, shape, seed=0):
    return placed(torch.randint(low, high, shape, generator=generator(seed), device="cpu"))


def randperm(n, seed=0):
    return placed(torch.randperm(n, generator=generator(seed), device="cpu"))
