"""The MTP layer by its formulas, in float64, from a checkpoint's tensors: nothing of the runtime.

Formulas: DeepSeek-V3 report, sections 2.1 and 2.2; DeepSeek-V3.2-Exp report, eq. 1.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from .changes import change_config
from .oracle import save

LAYER = 6


def save_with_mtp(model, folder: Path, seed: int = 0, own_tables: bool = True) -> Path:
    """A transformers model and a random MTP layer beside it, shaped as its last layer."""
    save(model, folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    generator = torch.Generator().manual_seed(seed)

    def like(value: torch.Tensor, name: str) -> torch.Tensor:
        noise = torch.randn(value.shape, generator=generator)
        if name.endswith("norm.weight"):
            return 1 + 0.2 * noise
        return noise * (value.shape[-1] ** -0.5 if value.dim() > 1 else 0.1)

    layer = model.config.num_hidden_layers
    last, own = f"model.layers.{layer - 1}.", f"model.layers.{layer}."
    shapes = {n.removeprefix(last): t for n, t in tensors.items() if n.startswith(last)}
    hidden = tensors["model.norm.weight"]
    shapes |= {f"{name}.weight": hidden for name in ("enorm", "hnorm", "shared_head.norm")}
    shapes["eh_proj.weight"] = torch.empty(len(hidden), 2 * len(hidden))
    if own_tables:
        table = tensors["lm_head.weight"]
        shapes |= {"embed_tokens.weight": table, "shared_head.head.weight": table}
    tensors |= {own + name: like(value, name) for name, value in shapes.items()}
    save_file(tensors, path)
    change_config(folder, num_nextn_predict_layers=1)
    return folder


class MtpOracle:
    """Every quantity of the layer for all positions of one request at once."""

    def __init__(self, folder: Path) -> None:
        self.c = json.loads((folder / "config.json").read_text())
        tensors = load_file(folder / "model.safetensors")
        self.top = {n: t.double() for n, t in tensors.items() if not n.startswith("model.layers.")}
        prefix = f"model.layers.{LAYER}."
        self.w = {
            n.removeprefix(prefix).removesuffix(".weight"): t.double()
            for n, t in tensors.items()
            if n.startswith(prefix)
        }
        self.glm = self.c["model_type"] == "glm_moe_dsa"

    def __call__(self, following: list[int], hidden: torch.Tensor):
        """y [T, d], logits [T, vocabulary] and the selected positions of each row."""
        w = self.w
        table = w.get("embed_tokens", self.top["model.embed_tokens.weight"])
        e = table[torch.tensor(following)]
        e[0] = 0
        u = torch.cat((self.rms(e, "enorm"), self.rms(hidden.double(), "hnorm")), 1)
        x = u @ w["eh_proj"].T
        attended, selected = self.attention(self.rms(x, "input_layernorm"))
        x = x + attended
        normed = self.rms(x, "post_attention_layernorm")
        x = x + torch.stack([self.experts(row) for row in normed])
        y = self.rms(x, "shared_head.norm")
        return y, y @ w.get("shared_head.head", self.top["lm_head.weight"]).T, selected

    def rms(self, x: torch.Tensor, name: str) -> torch.Tensor:
        eps = self.c["rms_norm_eps"]
        return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * self.w[name]

    def attention(self, h: torch.Tensor):
        c, w = self.c, self.w
        heads, nope, rope = (
            c["num_attention_heads"],
            c["qk_nope_head_dim"],
            c["qk_rope_head_dim"],
        )
        count = len(h)
        q_latent = self.rms(h @ w["self_attn.q_a_proj"].T, "self_attn.q_a_layernorm")
        query = (q_latent @ w["self_attn.q_b_proj"].T).view(count, heads, nope + rope)
        both = h @ w["self_attn.kv_a_proj_with_mqa"].T
        latent = self.rms(both[:, :-rope], "self_attn.kv_a_layernorm")
        key_rope = self.rotate(both[:, -rope:], interleaved=True)
        up = (latent @ w["self_attn.kv_b_proj"].T).view(count, heads, -1)
        selected = self.select(h, q_latent)
        out = torch.zeros(count, heads, up.shape[-1] - nope, dtype=torch.float64)
        for head in range(heads):
            rotated = self.rotate(query[:, head, nope:], interleaved=True)
            logits = query[:, head, :nope] @ up[:, head, :nope].T + rotated @ key_rope.T
            for t, rows in enumerate(selected):
                at = sorted(rows)
                weights = (logits[t, at] * self.scale).softmax(-1)
                out[t, head] = weights @ up[at, head, nope:]
        return out.flatten(1) @ w["self_attn.o_proj"].T, selected

    def select(self, h: torch.Tensor, q_latent: torch.Tensor) -> list[set[int]]:
        """Of equal scores the later position."""
        c, w = self.c, self.w
        heads, dim = c["index_n_heads"], c["index_head_dim"]
        name = "self_attn.indexer."
        query = (q_latent @ w[name + "wq_b"].T).view(len(h), heads, dim)
        key = h @ w[name + "wk"].T
        key = (key - key.mean(-1, keepdim=True)) / (key.var(-1, False, keepdim=True) + 1e-6).sqrt()
        key = self.rotate(key * w[name + "k_norm"] + w[name + "k_norm.bias"], self.glm)
        weights = h @ w[name + "weights_proj"].T / math.sqrt(heads * dim)
        scores = torch.zeros(len(h), len(h), dtype=torch.float64)
        for head in range(heads):
            hits = (self.rotate(query[:, head], self.glm) @ key.T).relu()
            scores += weights[:, head, None] * hits
        rows = scores.tolist()
        return [
            set(sorted(range(t + 1), key=lambda s: (row[s], s))[-c["index_topk"] :])
            for t, row in enumerate(rows)
        ]

    def experts(self, h: torch.Tensor) -> torch.Tensor:
        c, w = self.c, self.w
        score = (w["mlp.gate"] @ h).sigmoid()
        choice = (score + w["mlp.gate.e_score_correction_bias"]).tolist()
        size = len(choice) // c["n_group"]
        groups = [list(range(g * size, (g + 1) * size)) for g in range(c["n_group"])]
        value = [sum(sorted(choice[e] for e in group)[-2:]) for group in groups]
        best = sorted(range(len(groups)), key=lambda g: value[g])[-c["topk_group"] :]
        open_ = [e for g in best for e in groups[g]]
        chosen = sorted(open_, key=lambda e: choice[e])[-c["num_experts_per_tok"] :]
        total = sum(score[e] for e in chosen)
        out = self.mlp(h, "mlp.shared_experts")
        for e in chosen:
            out = out + score[e] / total * c["routed_scaling_factor"] * self.mlp(
                h, f"mlp.experts.{e}"
            )
        return out

    def mlp(self, h: torch.Tensor, name: str) -> torch.Tensor:
        w = self.w
        gate = w[f"{name}.gate_proj"] @ h
        return w[f"{name}.down_proj"] @ (gate * gate.sigmoid() * (w[f"{name}.up_proj"] @ h))

    def rotate(self, x: torch.Tensor, interleaved: bool) -> torch.Tensor:
        """The first `qk_rope_head_dim` dims of each row, by the angles of its position."""
        x, pairs = x.clone(), self.c["qk_rope_head_dim"] // 2
        for position in range(len(x)):
            for i, frequency in enumerate(self.frequencies()):
                first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + pairs)
                a, b = x[position, first].item(), x[position, second].item()
                cos, sin = math.cos(position * frequency), math.sin(position * frequency)
                x[position, first], x[position, second] = a * cos - b * sin, a * sin + b * cos
        return x

    def frequencies(self) -> list[float]:
        rope, dim = self.c["rope_parameters"], self.c["qk_rope_head_dim"]
        theta = rope["rope_theta"]
        plain = [theta ** (-2 * i / dim) for i in range(dim // 2)]
        if rope["rope_type"] == "default":
            return plain
        original = rope["original_max_position_embeddings"]

        def turning(turns: float) -> float:
            return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

        low = max(math.floor(turning(rope["beta_fast"])), 0)
        high = min(math.ceil(turning(rope["beta_slow"])), dim - 1)
        slow = [min(max((i - low) / max(high - low, 1e-3), 0), 1) for i in range(dim // 2)]
        return [f / rope["factor"] * s + f * (1 - s) for f, s in zip(plain, slow, strict=True)]

    @property
    def scale(self) -> float:
        plain = (self.c["qk_nope_head_dim"] + self.c["qk_rope_head_dim"]) ** -0.5
        rope = self.c["rope_parameters"]
        if rope["rope_type"] == "default":
            return plain
        return plain * (0.1 * rope["mscale_all_dim"] * math.log(rope["factor"]) + 1) ** 2
