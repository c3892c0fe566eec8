"""What the run was measured on."""

from __future__ import annotations

import platform
import shutil
import subprocess

import torch
import triton

from kernel_speed import deepgemm


def machine() -> dict[str, object]:
    known = versions()
    peer = deepgemm.installed_version()
    if peer:
        known["deep_gemm"] = peer
    return {"device": torch.cuda.get_device_name(), "driver": driver(), "versions": known}


def versions() -> dict[str, str | None]:
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }


def driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    if not shutil.which(query[0]):
        return "unknown"
    said = subprocess.run(query, capture_output=True, text=True).stdout.split()
    return said[0] if said else "unknown"
