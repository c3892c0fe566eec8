"""Whether a checkpoint's head is its embedding, as `tie_word_embeddings` says. No torch."""

from __future__ import annotations

from collections.abc import Iterator

from ixsearch.runtime.shards import CheckpointError, Entry, Shards

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
CHUNK = 8 << 20


def head_differs(shards: Shards) -> bool:
    """Reads both, up to their first difference; false where the files lack one of them.

    Raises:
        CheckpointError: a file cannot be read.
    """
    embedding, head = (shards.entries.get(name) for name in (EMBEDDING, HEAD))
    if embedding is None or head is None:
        return False
    if (embedding.dtype, embedding.shape) != (head.dtype, head.shape):
        return True
    pairs = zip(_chunks(shards, embedding), _chunks(shards, head), strict=True)
    return any(a != b for a, b in pairs)


def _chunks(shards: Shards, entry: Entry) -> Iterator[bytes]:
    path = shards.folder / entry.file
    try:
        with open(path, "rb") as file:
            file.seek(entry.begin)
            for at in range(0, entry.size, CHUNK):
                yield file.read(min(CHUNK, entry.size - at))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from None
