"""Line charts and sparklines of text. A braille character shows two by four dots."""

from collections.abc import Sequence
from itertools import pairwise

BLANK = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot in a braille character, by row and column; see Unicode's braille patterns."""
BARS = "▁▂▃▄▅▆▇█"

Points = Sequence[tuple[float, float]]


def braille_chart(
    lines: Sequence[Points], width: int, height: int, x_range: tuple[float, float], y_range: tuple[float, float]
) -> list[list[tuple[str, int]]]:
    """`height` rows of `width` characters, each with the number of the line that it shows, or -1 for a blank.

    Where lines cross, the character shows the dots of both and the number of the later one. Values outside of the
    ranges are drawn at the edge.
    """
    bits = [[0] * width for _ in range(height)]
    owner = [[-1] * width for _ in range(height)]
    for number, points in enumerate(lines):
        across, up = 2 * width, 4 * height
        dots = [(_scaled(x, x_range, across), up - 1 - _scaled(y, y_range, up)) for x, y in sorted(points)]
        for column, row in _connected(dots):
            bits[row // 4][column // 2] |= DOTS[row % 4][column % 2]
            owner[row // 4][column // 2] = number
    return [
        [(chr(BLANK + bit) if bit else " ", number) for bit, number in zip(*row, strict=True)]
        for row in zip(bits, owner, strict=True)
    ]


def sparkline(values: Sequence[float], width: int) -> str:
    """The values as bars between their lowest and highest, averaged to at most `width` characters."""
    size = -(-len(values) // width) if values else 1
    means = [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
    if not means:
        return ""
    return "".join(BARS[_scaled(mean, (min(means), max(means)), len(BARS))] for mean in means)


def _scaled(value: float, limits: tuple[float, float], cells: int) -> int:
    """The cell of a value when its range is divided into `cells`; the middle for a range without width."""
    low, high = limits
    if not high > low:
        return (cells - 1) // 2
    return min(max(int((value - low) / (high - low) * cells), 0), cells - 1)


def _connected(dots: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The dots, and those on the way from each to the next."""
    found = set(dots[:1])
    for (x0, y0), (x1, y1) in pairwise(dots):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        found |= {(round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)) for i in range(steps + 1)}
    return found
