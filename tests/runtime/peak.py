"""What a piece of torch code allocates: its largest tensor, and the most that lives at once."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Peak(TorchDispatchMode):
    """Sees every tensor that an operation gives while it is entered; views count once."""

    def __init__(self):
        super().__init__()
        self.largest = 0
        """Bytes of the largest storage."""
        self.most = 0
        """Bytes that were alive at once."""
        self._live = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        inputs = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        given = function(*args, **(kwargs or {}))
        for tensor in _tensors(given):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in inputs:
                self._live[storage.data_ptr()] = StorageWeakRef(storage), storage.nbytes()
                self.largest = max(self.largest, storage.nbytes())
        self._live = {at: one for at, one in self._live.items() if not one[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._live.values()))
        return given


def _tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
