"""Tensors for tests: drawn on the CPU, so alike everywhere, and then on the default device."""

from __future__ import annotations

import torch


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator("cpu").manual_seed(seed)


def here(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.get_default_device())


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return here(torch.randn(*shape, generator=generator(seed), device="cpu").to(dtype))


def randint(low: int, high: int, shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    return here(torch.randint(low, high, shape, generator=generator(seed), device="cpu"))


def randperm(n: int, seed: int = 0) -> torch.Tensor:
    return here(torch.randperm(n, generator=generator(seed), device="cpu"))


def angles(tokens: int, pairs: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    turn = randn(tokens, pairs, seed=1000 + seed).cpu() * 3
    return here(turn.cos()), here(turn.sin())


def slots_out_of_order(tokens: int, slots: int, seed: int = 0) -> torch.Tensor:
    return randperm(slots, seed)[:tokens]


def apart(x: torch.Tensor) -> torch.Tensor:
    """The same values with a gap behind each row, as a slice of a wider projection has them."""
    wide = torch.full((*x.shape[:-1], x.shape[-1] + 5), float("nan"), dtype=x.dtype)
    wide = wide.to(x.device)
    wide[..., 2:-3] = x
    return wide[..., 2:-3]


def spread(x: torch.Tensor) -> torch.Tensor:
    """The same values, with the last dim not dense."""
    return x.repeat_interleave(2, -1)[..., ::2]
