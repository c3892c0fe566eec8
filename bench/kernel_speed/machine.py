"""What the run was measured on."""

from __future__ import annotations

import platform
import shutil
import subprocess

import torch
import triton

from kernel_speed import deepgemm


def machine() -> dict[str, object]:
    versions = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }
    peer = deepgemm.installed_version()
    if peer:
        versions["deep_gemm"] = peer
    return {"device": torch.cuda.get_device_name(), "driver": _driver(), "versions": versions}


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    if not shutil.which(query[0]):
        return "unknown"
    said = subprocess.run(query, capture_output=True, text=True).stdout.split()
    return said[0] if said else "unknown"
