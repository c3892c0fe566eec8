"""The model that comes with the package; README.md is its card."""

from pathlib import Path

MODEL_FOLDER = Path(__file__).parent
