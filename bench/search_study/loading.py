"""The engine and the tokenizer of a study."""

from __future__ import annotations

from pathlib import Path

import torch

from ixsearch.job.locate import locate_model
from ixsearch.runtime import NativeEngine
from ixsearch.runtime.tokenizer import Tokenizer
from search_study.memo import Memo, MemoEngine


def loaded(model: str | None, memo: Path, device: str | None) -> tuple[MemoEngine, Tokenizer]:
    """In float32, with what the memo knows. `model`: None for the bundled one."""
    torch.backends.cuda.matmul.allow_tf32 = False
    folder = locate_model(model)
    native = NativeEngine.load(folder, device=device, dtype=torch.float32)
    return MemoEngine(native, Memo(memo)), Tokenizer.load(folder)
