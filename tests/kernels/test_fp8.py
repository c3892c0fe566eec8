"""e4m3 with power-of-two scales, against an independent reading of the format."""

import math

import numpy as np
import pytest
import torch

from ixsearch.kernels.twins.fp8 import (
    FP8,
    from_fp8,
    group_amax,
    groups_of,
    index_scales,
    latent_scales,
    power_of_two_from,
    to_fp8,
)

from . import fp8_reading as reading


def to_bytes(values, scale=1.0):
    x = torch.tensor(values, dtype=torch.float32)
    return to_fp8(x, torch.tensor([scale])).view(torch.uint8).tolist()


def test_every_byte_is_what_the_format_says():
    every = torch.arange(256, dtype=torch.uint8).view(FP8).float().tolist()
    np.testing.assert_equal(every, [reading.decode(b) for b in range(256)])


def test_rounding_to_the_nearest():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3000, generator=generator) * torch.exp2(
        torch.randint(-12, 9, (3000,), generator=generator).float()
    )
    halfway = torch.tensor((reading.VALUES[:-1] + reading.VALUES[1:]) / 2, dtype=torch.float32)
    values = torch.cat((x, halfway, -halfway)).clamp(-448, 448).tolist()
    assert to_bytes(values) == [reading.encode(v) for v in values]


def test_edges():
    assert to_bytes([0.0, -0.0, 448.0, -448.0]) == [0x00, 0x80, 0x7E, 0xFE]
    assert to_bytes([449.0, 1e6, -1e30]) == [0x7E, 0x7E, 0xFE]  # saturated, never NaN
    assert to_bytes([2**-6, 2**-9, 3 * 2**-9]) == [0x08, 0x01, 0x03]  # least normal; denormals
    assert to_bytes([2**-10, 1.5 * 2**-9, 0.99 * 2**-10]) == [0x00, 0x02, 0x00]  # ties to even
    assert to_bytes([1.0, 2.0], scale=2.0**-3) == to_bytes([8.0, 16.0])


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_shows(bad):
    """It makes its own group NaN, and no other."""
    x = torch.ones(1, 200)
    x[0, 150] = bad
    for scales_of in (index_scales, latent_scales):
        back = from_fp8(to_fp8(x, scales := scales_of(group_amax(x))), scales)
        assert back[0, :128].isfinite().all() and back[0, 150].isnan()
        assert back[0, 128:].isnan().all()


def test_power_of_two_from_is_exact_next_to_powers():
    powers = torch.exp2(torch.arange(-30, 100).float())
    up, down = (torch.nextafter(powers, torch.tensor(v)) for v in (math.inf, 0.0))
    assert torch.equal(power_of_two_from(powers), powers)
    assert torch.equal(power_of_two_from(down), powers)
    assert torch.equal(power_of_two_from(up), 2 * powers)


def test_the_two_floors():
    """Indexer: on the largest value. Latents: on the scale."""
    amax = torch.tensor([0.0, 1e-6, 1e-4, 0.04, 1.0, 448.0, 449.0, 5000.0])
    assert index_scales(amax).tolist() == [reading.index_scale([a]) for a in amax.tolist()]
    assert latent_scales(amax).tolist() == [reading.latent_scale([a]) for a in amax.tolist()]
    assert index_scales(amax)[0] == 2**-22 and latent_scales(amax)[0] == 2**-13
    assert index_scales(amax)[5] == latent_scales(amax)[5] == 1.0


@pytest.mark.parametrize("dims", [1, 32, 96, 127, 128, 129, 256, 300, 512])
def test_round_trip_error(dims):
    """Half a step: 2^-4 of a value at most, or half of the smallest denormal."""
    generator = torch.Generator().manual_seed(dims)
    x = torch.randn(40, dims, generator=generator) * 10.0 ** torch.randint(
        -4, 4, (40, 1), generator=generator
    )
    x[0] = 0
    scales = index_scales(group_amax(x))
    assert scales.shape == (40, groups_of(dims)) == (40, math.ceil(dims / 128))
    back = from_fp8(to_fp8(x, scales), scales)
    wide = scales.repeat_interleave(128, -1)[:, :dims]
    assert ((back - x).abs() <= torch.maximum(x.abs() / 16, wide * 2**-10)).all()
    assert (back.abs() <= 448 * wide).all() and not back[0].any()
    assert torch.equal(back.to(torch.bfloat16).float(), back)
    assert torch.equal(to_fp8(back, scales).view(torch.uint8), to_fp8(x, scales).view(torch.uint8))


def test_groups_have_scales_of_their_own():
    x = torch.cat((torch.full((1, 128), 1e-3), torch.full((1, 4), 100.0)), -1)
    assert index_scales(group_amax(x)).tolist() == [[2**-18, 0.25]]
