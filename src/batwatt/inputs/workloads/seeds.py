"""Random generators of seeds that users give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batwatt.checks import checked_whole

if TYPE_CHECKING:
    import numpy as np


def rng_of(seed: object, where: object) -> np.random.Generator:
    """A generator of its own for this seed: same seed, same draws. InputError unless a whole number >= 0."""
    import numpy as np

    return np.random.default_rng(checked_whole(where, "seed", seed, 0, hint="give for instance seed 0"))
