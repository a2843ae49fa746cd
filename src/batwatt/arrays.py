"""The arrays that kernels take, by type and dimensions, C-contiguous; `setup.py` knows these names."""

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
RealTable = NDArray[np.float64]
Integers = NDArray[np.int64]
IntegerTable = NDArray[np.int64]
