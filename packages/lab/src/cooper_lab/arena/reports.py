"""The arena's reports: for every hole one page with the runs of all designs and seeds in it."""

from collections.abc import Sequence
from pathlib import Path

from cooper_audit.report.palette import COLOURS
from cooper_audit.report.report import REPORT_FILE
from cooper_lab.arena.cells import Cell
from cooper_rl import write_report


def write_hole_reports(cells: Sequence[Cell]) -> list[Path]:
    """Write `report.html` into the folder of every hole that has a finished cell. Returns the pages, by hole.

    The runs of a design stand together and have one colour.
    """
    pages = []
    for hole in dict.fromkeys(cell.hole for cell in cells):
        finished = [cell for cell in cells if cell.hole == hole and cell.result_path.exists()]
        if finished:
            several = len({cell.seed for cell in finished}) > 1
            designs = list(dict.fromkeys(cell.design for cell in finished))
            finished.sort(key=lambda cell: (designs.index(cell.design), cell.seed))
            colours = [COLOURS[designs.index(cell.design) % len(COLOURS)] for cell in finished]
            labels = {
                cell.directory: f"{cell.design}, seed {cell.seed}" if several else cell.design for cell in finished
            }
            folder = finished[0].directory.parents[1]
            notes = ["Gold is the exact accuracy on test problems; no design reads it. The runs start from one policy."]
            pages.append(write_report(list(labels), folder / REPORT_FILE, f"The arena: {hole}", notes, labels, colours))
    return pages
