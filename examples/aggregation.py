"""An aggregation of your own: between a mean over completions and a mean over tokens.

In YAML: algorithm: {aggregation: {kind: "aggregation:PowerOfLength", exponent: 0.5}}
"""

import numpy as np
from pydantic import Field

from cooper_rl import Config


class PowerOfLength(Config):
    """A completion's weight is its length to a power: 0 gives the mean over completions, 1 the mean over tokens."""

    exponent: float = Field(default=0.5, ge=0, le=1)
    """The power."""

    def token_weights(self, lengths: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """The weight of each token, for completions of these lengths; `counted` are the lengths in the denominator."""
        found = lengths ** (self.exponent - 1) / (counted**self.exponent).sum()
        print("own aggregation: weights of tokens", found.round(4)[:4])
        return found


if __name__ == "__main__":
    from tiny_run import train

    train(algorithm={"aggregation": PowerOfLength()})
