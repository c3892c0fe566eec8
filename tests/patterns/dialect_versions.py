"""Versions of engines, in groups that read the keys alike."""

from __future__ import annotations

VLLM_GATED = ("0.21.0", "0.22.0", "0.22.1")
VLLM_OPEN = ("0.23.0", "0.24.0", "0.25.1", "0.26.0", "0.28.0", "0.29.0", "0.31.0", "0.33.0")
SGLANG_FIRST = ("0.5.10.post1", "0.5.11", "0.5.12.post1")
SGLANG_13 = ("0.5.13", "0.5.13.post1")
SGLANG_CHECKED = ("0.5.14", "0.5.15.post1", "0.5.17", "0.5.19")
SGLANG_TYPES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
TRANSFORMERS_NEW = ("5.11.0", "5.12.1", "5.19.0", "5.24.0")
