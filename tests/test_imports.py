"""Imports go one way, and the command line starts without the heavy packages."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "patterns": {"patterns"},
    "kernels": {"kernels"},
    "runtime": {"patterns", "kernels", "runtime"},
}
HOUSES = {"patterns", "kernels", "runtime"}


def imported_modules(source: str, package: str) -> list[str]:
    """Full names of what `source`, a module of `package`, imports, wherever in the module."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: -node.level + 1 or None] if node.level else []
            base = ".".join([*parts, *filter(None, [node.module])])
            names += [f"{base}.{alias.name}" for alias in node.names]
    return names


def house_of(module: str) -> str | None:
    """Which of our packages a module belongs to; None: not ours."""
    parts = module.split(".")
    if parts[0] in HOUSES and len(parts) > 1:
        return f"top-level {parts[0]}"
    if parts[0] != "ixsearch":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in HOUSES else "ixsearch"


def forbidden(source: str, house: str, package: str) -> list[str]:
    wanted = MAY_IMPORT[house]
    modules = imported_modules(source, package)
    return [m for m in modules if house_of(m) is not None and house_of(m) not in wanted]


@pytest.mark.parametrize("house", sorted(MAY_IMPORT))
def test_imports_go_one_way(house: str) -> None:
    files = sorted((ROOT / house).rglob("*.py"))
    assert files
    for file in files:
        relative = file.relative_to(ROOT).parent
        package = ".".join(["ixsearch", *relative.parts])
        assert forbidden(file.read_text(), house, package) == [], file


@pytest.mark.parametrize(
    ("house", "source"),
    [
        ("patterns", "from ixsearch.runtime import x"),
        ("patterns", "import ixsearch.version"),
        ("patterns", "from ixsearch import version"),
        ("patterns", "from ..kernels import topk"),
        ("patterns", "from .. import runtime"),
        ("kernels", "def f():\n    from ixsearch.patterns import Pattern"),
        ("kernels", "from kernels.topk import x"),
        ("runtime", "import ixsearch.search.study"),
        ("runtime", "from ixsearch.results import Quality"),
    ],
)
def test_this_test_sees_a_wrong_import(house: str, source: str) -> None:
    assert forbidden(source, house, f"ixsearch.{house}")


@pytest.mark.parametrize(
    ("house", "source"),
    [
        ("patterns", "from ixsearch.patterns.errors import PatternError"),
        ("patterns", "from .errors import PatternError\nfrom . import errors"),
        ("kernels", "import torch"),
        ("kernels", "import kernels"),
        ("runtime", "from ixsearch.patterns import Pattern\nimport ixsearch.kernels.topk"),
    ],
)
def test_this_test_lets_a_right_import_pass(house: str, source: str) -> None:
    assert not forbidden(source, house, f"ixsearch.{house}")


def test_patterns_need_little() -> None:
    for file in (ROOT / "patterns").rglob("*.py"):
        for module in imported_modules(file.read_text(), "ixsearch.patterns"):
            top = module.split(".")[0]
            assert top in sys.stdlib_module_names | {"ixsearch", "packaging", "yaml"}, (
                file,
                module,
            )


def test_the_command_line_starts_light() -> None:
    heavy = ("torch", "optuna", "lm_eval", "transformers", "numpy", "triton", "matplotlib", "yaml")
    code = f"import ixsearch.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
