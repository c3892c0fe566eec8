"""Figures of the best float32 top-k kernels, from the measurement of peers on one H200.

They were built from source, which is not done here. In the same measurement stood `torch.topk`:
through it their times are carried over to a run that times `torch.topk` too. Measured 2026-11-29,
K = 2048, torch 2.11.0, medians of graph replays with L2 flushed, microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TopKFigures:
    """One shape of that measurement."""

    peer: str
    peer_us: float
    torch_us: float

    def carried_over(self, torch_us: float) -> float:
        """The peer's time in a run in which `torch.topk` takes `torch_us`."""
        return self.peer_us / self.torch_us * torch_us


CLUSTERS = "FlashInfer clusters"
DEEPSELECT = "DeepSelect"
FILTERED = "FlashInfer filtered"

TOPK = {
    (4096, 8192): TopKFigures(CLUSTERS, 171.6, 513.0),
    (4096, 32768): TopKFigures(CLUSTERS, 406.4, 1654.0),
    (4096, 131072): TopKFigures(CLUSTERS, 1484.7, 6000.0),
    (1, 8192): TopKFigures(DEEPSELECT, 9.9, 41.0),
    (1, 32768): TopKFigures(CLUSTERS, 14.4, 50.0),
    (1, 131072): TopKFigures(CLUSTERS, 19.2, 60.0),
    (16, 8192): TopKFigures(DEEPSELECT, 11.6, 52.3),
    (16, 32768): TopKFigures(CLUSTERS, 17.9, 57.4),
    (16, 131072): TopKFigures(CLUSTERS, 26.6, 83.3),
    (64, 8192): TopKFigures(DEEPSELECT, 11.9, 57.2),
    (64, 32768): TopKFigures(FILTERED, 29.3, 78.0),
    (64, 131072): TopKFigures(DEEPSELECT, 55.5, 156.6),
}
"""By rows (those of 4,096 causal, the last of their context) and context."""
