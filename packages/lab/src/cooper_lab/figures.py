"""Figures as elements of a page."""

import io
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_svg(figure: "Figure") -> Markup:
    """The figure as an SVG element without the XML prologue. It is safe to embed because we draw it ourselves."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])
