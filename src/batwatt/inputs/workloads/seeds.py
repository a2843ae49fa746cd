"""Random generators of seeds that users give."""

from __future__ import annotations

import numpy as np

from batwatt.errors import InputError


def rng_of(seed: object, where: object) -> np.random.Generator:
    """A generator of its own for this seed: same seed, same draws. InputError unless a whole number >= 0."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not seed >= 0:
        raise InputError(where, f"seed must be a whole number >= 0, got {seed!r}", "give for instance seed 0")
    return np.random.default_rng(seed)
