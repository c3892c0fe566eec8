"""The phases of the training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import nn

from training.lessons import LessonStream
from training.log import Log
from training.measures import hit_rates, language_loss
from training.model import DsaModel, Pass
from training.mtp import DraftLayer
from training.optimizer import (
    INDEXER_RATE,
    Optimizer,
    indexer_parameters,
    make_adam,
    step_adam,
)
from training.replay import WARM_UP, Outputs, Replay

Report = dict[str, Any]
Schedule = Callable[[int, float], float]
"""Share of the full learning rates, by the number of the step and the progress of the phase."""


@dataclass(frozen=True)
class Settings:
    """What a run may vary."""

    seed: int = 0
    batch: int = 32
    tokens: int = 1024
    workers: int = 10
    rate: float = 1.0
    """Of the learning rates in dense training; a deeper model wants less."""
    warm_distil: int = 16
    """Documents of a batch on which indexers learn under dense attention."""
    distil: int = 6
    """The same in sparse training."""
    most_shared: float = 0.4
    """Random S layers: each step up to this share of the layers."""
    balance_rate: float = 0.005
    """Of the routers' biases, at full learning rate."""
    sparse_share: float = 0.25
    """Of the full learning rates, in sparse training."""
    stage: float = 0.0
    """Of the lessons at first: 1 for a model that has been trained before."""
    stage_step: float = 0.04
    """How much the world grows each time what is recited is known."""
    look_every: int = 25
    """Steps between two looks at what is known."""
    log_every: int = 200
    graphs: bool = True
    """Capture steps as CUDA graphs, where there is CUDA."""
    max_steps: int | None = None
    """Of each phase; for tests."""


class Trainer:
    """A model, its MTP layer and their optimizers, phase by phase."""

    def __init__(self, model: DsaModel, draft: DraftLayer, settings: Settings, log: Log) -> None:
        self.model, self.draft = model, draft
        self.settings, self.log = settings, log
        self.device = next(model.parameters()).device
        self.stream = LessonStream(settings.seed, settings.batch, settings.tokens, settings.stage)
        self._lessons = self.stream.batches(settings.workers, self.device.type == "cuda")
        self.optimizer = Optimizer(model)
        self.indexers = make_adam(indexer_parameters(model))
        self.draft_optimizer = Optimizer(draft)
        self.draft_indexer = make_adam(indexer_parameters(draft))
        self._shares = Random(f"shares {settings.seed}")

    # -- phases --------------------------------------------------------------------------------

    def dense(self, seconds: float) -> None:
        """Language modelling under dense attention, while the world of the lessons grows."""
        self._run("dense", seconds, self._dense_step, self._dense_rate, look=self._grow)
        self.stream.stage = 1.0

    def warm(self, seconds: float) -> None:
        """The indexers learn the attention of the model, which stays as it is."""
        self._run("warm", seconds, self._warm_step, lambda n, t: _rise(n) * (1 - 0.7 * t))

    def sparse(self, seconds: float) -> None:
        """Model and indexers together, all layers F."""
        self._run("sparse", seconds, self._sparse_step, _down)

    def drop(self, seconds: float) -> None:
        """As `sparse`, each step with other layers S."""
        self._run("drop", seconds, self._sparse_step, _down, extra=self._random_pattern)

    def draft_phase(self, name: str, seconds: float, dense: bool) -> None:
        """The MTP layer on the model as it is, under dense or sparse attention."""
        step = self._draft_dense_step if dense else self._draft_step
        self._run(name, seconds, step, (lambda n, _: _rise(n)) if dense else _down)

    # -- steps: all on the device, so that they can be captured ----------------------------------

    def _dense_step(
        self, tokens: torch.Tensor, kinds: torch.Tensor, share: torch.Tensor
    ) -> Outputs:
        run = self.model.begin(tokens)
        logits = self.model.logits(self.model.dense(tokens, run))
        loss = language_loss(logits, tokens, kinds)
        loss.backward()
        self.optimizer.step(share)
        self._balance(self.model.routers(), run.loads, share)
        return _outputs(run, loss=loss, logits=logits)

    def _warm_step(self, tokens: torch.Tensor, _: torch.Tensor, share: torch.Tensor) -> Outputs:
        run = self.model.begin(tokens, distil=min(self.settings.warm_distil, len(tokens)))
        self.model.warm(tokens, run)
        torch.stack(run.divergences).sum().backward()
        step_adam(self.indexers, 2 * INDEXER_RATE * share)
        return _outputs(run)

    def _sparse_step(
        self,
        tokens: torch.Tensor,
        kinds: torch.Tensor,
        share: torch.Tensor,
        pattern: torch.Tensor | None = None,
    ) -> Outputs:
        run = self.model.begin(tokens, distil=min(self.settings.distil, len(tokens)))
        logits = self.model.logits(self.model.sparse(tokens, run, pattern))
        loss = language_loss(logits, tokens, kinds)
        (loss + torch.stack(run.divergences).sum()).backward()
        self.optimizer.step(share * self.settings.sparse_share)
        step_adam(self.indexers, INDEXER_RATE * share)
        self._balance(self.model.routers(), run.loads, share * self.settings.sparse_share)
        return _outputs(run, loss=loss, logits=logits)

    def _draft_dense_step(self, *inputs: torch.Tensor) -> Outputs:
        return self._draft_step(*inputs, dense=True)

    def _draft_step(
        self,
        tokens: torch.Tensor,
        kinds: torch.Tensor,
        share: torch.Tensor,
        dense: bool = False,
    ) -> Outputs:
        with torch.no_grad():
            hidden = self.model.sparse(tokens, self.model.begin(tokens))
        distil = self.settings.warm_distil if dense else self.settings.distil
        run = self.model.begin(tokens, distil=min(distil, len(tokens)))
        logits = self.draft(self.model, tokens, hidden, run, dense)
        loss = language_loss(logits, tokens, kinds, ahead=2)
        (loss + run.divergences[0]).backward()
        self.draft_optimizer.step(share)
        step_adam(self.draft_indexer, 2 * INDEXER_RATE * share)
        self._balance([self.draft.block.mlp.gate], run.loads, share)
        return _outputs(run, loss=loss, drafts=logits)

    def _balance(
        self, routers: list[nn.Module], loads: list[torch.Tensor], share: torch.Tensor
    ) -> None:
        for router, load in zip(routers, loads, strict=True):
            router.balance(load, self.settings.balance_rate * share)

    # -- the loop ------------------------------------------------------------------------------

    def _run(
        self,
        name: str,
        seconds: float,
        step: Callable[..., Outputs],
        schedule: Schedule,
        look: Callable[[Report, float], None] | None = None,
        extra: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        """Steps until the seconds are over; those of the first steps, which compile, are extra.

        `look` sees what is known now and then; `extra` makes one more input of each step.
        """
        self.log.say(name, f"for {seconds:.0f} s")
        replay = Replay(step, self.device, self.settings.graphs)
        begun = started = time.time()
        number = 0
        while number != self.settings.max_steps:
            progress = (time.time() - started) / seconds if number > WARM_UP else 0.0
            if progress >= 1:
                break
            tokens, kinds = self._batch()
            share = torch.tensor(schedule(number, progress))
            more = [extra()] if extra else []
            outputs = replay(tokens, kinds, share, *more)
            if number % self.settings.look_every == 0:
                report = _look(outputs, tokens, kinds)
                if look:
                    look(report, progress)
                if number % self.settings.log_every == 0:
                    self.log.say(name, number, report)
            number += 1
            if number == WARM_UP + 1:
                self._wait()
                started = time.time()
            elif number % 20 == 0:
                self._wait()  # the host must not run ahead of the clock
        self._wait()
        self._close(name, number, begun, started)

    def _close(self, name: str, steps: int, begun: float, started: float) -> None:
        seconds = time.time() - started
        tokens = self.settings.batch * self.settings.tokens
        figures = {
            "steps": steps,
            "tokens": steps * tokens,
            "seconds": round(seconds, 1),
            "first_steps": round(started - begun, 1),
            "tokens_a_second": round((steps - WARM_UP - 1) * tokens / seconds),
        }
        self.log.note("phases", name, figures)
        self.log.say(name, figures)

    def _batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, kinds = next(self._lessons)
        to = {"device": self.device, "non_blocking": True}
        return tokens.to(**to).long(), kinds.to(**to)

    def _dense_rate(self, number: int, progress: float) -> float:
        return self.settings.rate * _half_then_down(number, progress)

    def _grow(self, report: Report, progress: float) -> None:
        """A larger world once what is recited is known; and whatever is known, a whole one for
        the second half of the phase."""
        known = report["recited"] > 0.9
        stage = self.stream.stage + (self.settings.stage_step if known else 0.0)
        self.stream.stage = min(1.0, max(stage, (progress - 0.35) / 0.2))
        report["stage"] = self.stream.stage

    def _random_pattern(self) -> torch.Tensor:
        share = self.settings.most_shared * self._shares.random()
        layers = self.model.shape.num_hidden_layers
        full = [layer == 0 or self._shares.random() >= share for layer in range(layers)]
        return torch.tensor(full)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def _rise(number: int, steps: int = 50) -> float:
    return min(1.0, (number + 1) / steps)


def _down(number: int, progress: float) -> float:
    return _rise(number) * (1 - progress)


def _half_then_down(number: int, progress: float) -> float:
    """Full for half of the phase, then down to a fifth."""
    return _rise(number, 100) * min(1.0, 1.8 - 1.6 * progress)


def _outputs(run: Pass, **tensors: torch.Tensor) -> Outputs:
    outputs = {name: tensor.detach() for name, tensor in tensors.items()}
    if run.loads:
        outputs["loads"] = torch.stack(run.loads).float()
    if run.divergences:
        outputs["divergence"] = torch.stack(run.divergences).detach()
    return outputs


def _look(outputs: Outputs, tokens: torch.Tensor, kinds: torch.Tensor) -> Report:
    """Numbers out of what a step left."""
    report: Report = {}
    for name, ahead in (("logits", 1), ("drafts", 2)):
        if name in outputs:
            rates = hit_rates(outputs[name], tokens, kinds, ahead).tolist()
            report["recited"], report["solution"] = rates
    if "loss" in outputs:
        report["loss"] = outputs["loss"].item()
    if "divergence" in outputs:
        report["divergence"] = outputs["divergence"].mean().item()
    if "loads" in outputs:
        loads = outputs["loads"]
        report["imbalance"] = (loads.amax(-1) / loads.mean(-1)).max().item()
    return report
