"""Best-of-n: the gold reward of the completion that a proxy picks from n, for every n, without drawing anything."""

import math

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def best_of_n_curve(proxy: Float[ndarray, "P N"], gold: Float[ndarray, "P N"]) -> Float[ndarray, " N"]:
    """Expected gold reward of best-of-n for n = 1 to N, averaged over the P problems. With `gold=proxy`, of the proxy.

    Of n completions drawn without replacement from a problem's N, the one with the highest proxy score is kept. With
    gold sorted by proxy, its expectation is sum_i C(i - 1, n - 1) / C(N, n) gold_(i), for i from n to N. This is the
    unbiased estimator of Nakano et al. 2021 (arXiv 2112.09332, appendix I), used by Gao et al. 2022 (arXiv 2210.10760).
    Completions with the same proxy score count with the mean of their gold rewards, as if ties were broken at random.
    For small errors, use only n up to N / 2. Raises ValueError for scores that are not finite or of different shapes.
    """
    if proxy.shape != gold.shape or proxy.ndim != 2 or not proxy.size:
        raise ValueError(f"proxy scores of shape {proxy.shape} for gold rewards of shape {gold.shape}")
    if not (np.isfinite(proxy).all() and np.isfinite(gold).all()):
        raise ValueError("best-of-n needs finite scores")
    ranked_PN = np.stack([_gold_by_proxy(*row) for row in zip(proxy, gold, strict=True)])
    return _weights(proxy.shape[1]) @ ranked_PN.mean(axis=0)


def best_of_n_kl(n: int | Float[ndarray, " K"]) -> Float[ndarray, " K"]:
    """KL(best-of-n policy || policy) in nats: ln n - (n - 1) / n.

    It is formula G.3 of Stiennon et al. 2020 (arXiv 2009.01325), exact where no two completions have the same score,
    and an upper bound otherwise.
    """
    n = np.asarray(n, dtype=float)
    return np.log(n) - (n - 1) / n


def _gold_by_proxy(proxy: Float[ndarray, " N"], gold: Float[ndarray, " N"]) -> Float[ndarray, " N"]:
    """Gold rewards from the lowest to the highest proxy score, averaged over equal scores."""
    _, tie, counts = np.unique(proxy, return_inverse=True, return_counts=True)
    means = np.bincount(tie, gold) / counts
    return np.repeat(means, counts)


def _weights(size: int) -> Float[ndarray, "N N"]:
    """Row n - 1 holds the probability that the completion of each rank is the best of n."""
    return np.array(
        [[math.comb(i - 1, n - 1) / math.comb(size, n) for i in range(1, size + 1)] for n in range(1, size + 1)]
    )
