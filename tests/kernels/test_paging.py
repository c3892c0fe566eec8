"""Logical to physical indices, and the stores."""

import torch

from ixsearch.kernels import gather_latent, latent_store, physical_indices


def test_physical_indices():
    table = torch.tensor([[5, 2], [9, -1]], dtype=torch.int32)
    logical = torch.tensor(
        [[0, 3, 4, -1], [-1, 7, -1, 1], [0, 5, -1, 2], [8, 3, 1, 0]], dtype=torch.int32
    )
    request = torch.tensor([0, 0, 1, 1])
    slots, counts = physical_indices(logical, request, table, 4)
    assert slots.tolist() == [
        [20, 23, 8, -1],
        [-1, 11, -1, 21],
        [36, -1, -1, 38],  # position 5 lies in a block the request does not have
        [-1, 39, 37, 36],  # position 8 lies outside of the table
    ]
    assert counts.tolist() == [3, 2, 2, 3]
    assert slots.dtype == counts.dtype == torch.int32


def test_stored_rows_are_gathered_in_logical_order():
    generator = torch.Generator().manual_seed(0)
    cache = torch.full((6, 4, 5), float("nan"))
    ckv, kpe = torch.randn(9, 3, generator=generator), torch.randn(9, 2, generator=generator)
    table = torch.tensor([[4, 1], [0, 3]], dtype=torch.int32)
    slots = torch.tensor([16, 17, 18, 19, 4, 0, 1, 2, 3])
    latent_store(ckv, kpe, cache, slots)
    got = gather_latent(cache, table, torch.tensor([5, 4]), 3)
    assert torch.equal(got, torch.cat((ckv, kpe), -1))
