"""When epochs start. Within an epoch no policy changes."""

from collections.abc import Sequence

from esbas.errors import require


class Epochs:
    """The lengths of the epochs: 1, 2, 4, ... (the paper's 2^β), or the given ones; behind the last given one, lengths double."""

    def __init__(self, lengths: Sequence[int] | None = None) -> None:
        self._lengths = [1] if lengths is None else list(lengths)
        whole = all(isinstance(length, int) and length > 0 for length in self._lengths)
        require(whole and len(self._lengths) > 0, "epochs are positive whole lengths", epochs=lengths)

    def length(self, epoch: int) -> int:
        """The number of choices in this epoch."""
        beyond = epoch - len(self._lengths) + 1
        return self._lengths[epoch] if beyond <= 0 else self._lengths[-1] << beyond
