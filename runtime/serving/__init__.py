"""Many requests through one model: blocks, schedule, steps. See docs/serving.md."""

from ixsearch.runtime.serving.blocks import BlockPool
from ixsearch.runtime.serving.loop import Serving
from ixsearch.runtime.serving.request import Completion, Finish, Limits, LiveRequest, Wishes

__all__ = ["BlockPool", "Completion", "Finish", "Limits", "LiveRequest", "Serving", "Wishes"]
