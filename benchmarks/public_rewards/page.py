"""Writes the tables and the picture of the public rewards from the saved results.

    python benchmarks/public_rewards/page.py

The whole tables go into README.md beside this file, the summary and the picture into docs/public-rewards.md.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "public_rewards.json"
PAGE, PICTURE = ROOT / "docs" / "public-rewards.md", ROOT / "docs" / "public-rewards.svg"
TABLES = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- summary of benchmarks/results/public_rewards.json -->\n", "<!-- end of the summary -->\n"
COLOURS = {"gameable": "#c0392b", "refuses right answers": "#7f8c8d", "sound": "#27762f"}
ALONE = "(alone)"
"""How `what` ends for a reward that is paid beside others and is not meant to tell right from wrong."""
CONTAINS = ("anywhere", "at the beginning", "at the end", "the text's beginning", "either inside", "reference ")
"""How `what` begins where the reference is looked for in the text."""
OVERLAPS = ("words in common", "characters in common", "distance between")
"""How it begins where it is counted what both texts share."""
GYM, OURS = "reasoning-gym", "cooper"
Rows = dict[str, Any]


def package_of(name: str) -> str:
    return name.partition(":")[0]


def groups(rewards: Rows) -> dict[str, Rows]:
    """The rewards that check answers, those of reasoning-gym, those that are paid beside others, and the rest."""
    told = {name: row for name, row in rewards.items() if "worst" in row}
    alone = {name: row for name, row in rewards.items() if row["what"].endswith(ALONE)}
    return {
        "checks": {n: r for n, r in told.items() if n not in alone and package_of(n) != GYM},
        "gym": {n: r for n, r in told.items() if package_of(n) == GYM},
        "alone": alone,
        "rest": {n: r for n, r in rewards.items() if n not in told and n not in alone},
    }


def not_meant_for_answers(checks: Rows) -> tuple[int, int, int]:
    """Of the gameable ones: how many look for the reference in the text and how many count what both texts share, by
    their own description; and how many rest on one or two problems."""
    gameable = [row for row in checks.values() if row["verdict"] == "gameable"]
    contain, overlap = (sum(row["what"].startswith(begin) for row in gameable) for begin in (CONTAINS, OVERLAPS))
    return contain, overlap, sum(round(row["worst"][1] * row["problems"]) <= 2 for row in gameable)


def summary(results: Rows) -> str:
    """What is counted, as Markdown: rewards, packages, reasoning-gym, hangs, and what a search found."""
    parts = groups(results["rewards"])
    checks = {n: r for n, r in parts["checks"].items() if package_of(n) != OURS}
    packages = sorted({package_of(name) for name in checks})
    gamed = {package_of(name) for name, row in checks.items() if row["verdict"] == "gameable"}
    rows = [("rewards and graders that check answers", checks), (f"scorers of {GYM}, on their own tasks", parts["gym"])]
    text = "| | of | accept a wrong pattern | only refuse right answers | neither |\n" + "|" + "---|" * 5 + "\n"
    for label, each in rows:
        counts = [sum(row["verdict"] == verdict for row in each.values()) for verdict in COLOURS]
        text += f"| {label} | {len(each)} | {' | '.join(map(str, counts))} |\n"
    left = len(packages) - len(gamed)
    text += f"| packages without {GYM}, by their worst | {len(packages)} | {len(gamed)} | {left} together | |\n\n"
    hung = sorted(name for name, row in checks.items() if row.get("hangs"))
    found = {name: row["search"]["found"] for name, row in checks.items() if row.get("search", {}).get("found")}
    tried, timed = (sum(key in row for row in checks.values()) for key in ("search", "hangs"))
    more = sum(row["above a plain right one"] > 0 for row in parts["alone"].values())
    gameable = sum(row["verdict"] == "gameable" for row in checks.values())
    contain, overlap, few = not_meant_for_answers(checks)
    lines = (
        f"Of the {gameable} that accept a wrong "
        f"pattern, {contain} look for the reference somewhere in the text and {overlap} count words or characters that "
        "both texts share, by their own description: they are no graders of answers, and fail where they are paid as "
        f"such. {few} rest on one or two of 12 problems.",
        f"{len(hung)} of {timed} do not come back from one of ten hostile answers or more in 2 CPU seconds.",
        f"Of {tried} that no pattern games, a search of some 320 answers (`--adapt 5`) finds a way into {len(found)}.",
        f"{len(parts['alone'])} more are paid beside others (format, length, repetition); {more} of them pay a wrong "
        "answer more than the plain right one.",
        f"{len(parts['rest'])} tell nothing apart in the forms that were tried.",
        f"{len(results['missing'])} could not be called.",
    )
    text += "".join(f"- {line}\n" for line in lines)
    return text


def tables(results: Rows) -> str:
    """All tables, as Markdown."""
    parts = groups(results["rewards"])
    text = "# What public rewards accept: all of them\n\n"
    text += "[docs/public-rewards.md](../../docs/public-rewards.md) says how to read these tables. "
    text += "`attack_them.py` makes the results, `page.py` this file.\n"
    text += f"\n## Rewards and graders that check answers\n\n{_table(parts['checks'])}"
    text += f"\n## Scorers of {GYM}, each on its own task\n\n{_table(parts['gym'])}"
    text += (
        "\n## Paid beside others\n\nFormats, lengths and penalties. A right answer is nothing to them; what counts is "
    )
    text += (
        "whether they pay a wrong one more.\n\n| reward | version | reads | wrong paid more than the plain right one, "
    )
    text += "of problems | than most right ones | hangs on |\n" + "|" + "---|" * 6 + "\n"
    for name, row in sorted(parts["alone"].items()):
        shares = [f"{row[key]:.0%}" for key in ("above a plain right one", "above most right ones")]
        cells = [f"`{name}`", row["version"], row["what"].removesuffix(ALONE).strip(), *shares, _hangs(row)]
        text += f"| {' | '.join(cells)} |\n"
    if parts["rest"]:
        text += (
            "\n## Not told apart\n\nThese pay right answers no more than empty ones in every form that was tried.\n\n"
        )
        text += "".join(f"- `{name}` {row['version']}: {row['what']}\n" for name, row in sorted(parts["rest"].items()))
    text += (
        "\n## What a search found where no pattern did\n\n| reward | edit | accepted | of problems | exploit | for |\n"
    )
    text += "|" + "---|" * 6 + "\n"
    for name, row in sorted({**parts["checks"], **parts["gym"]}.items()):
        for edit, (share, problems, answer, given, *_) in row.get("search", {}).get("found", {}).items():
            text += f"| `{name}` | {edit} | {share:.0%} | {problems} | {_code(given)} | {_code(answer, 30)} |\n"
    text += "\n## Not called\n\n"
    text += "".join(f"- `{name}`: {_plain(why)}\n" for name, why in sorted(results["missing"].items()))
    return text


def _table(rows: Rows) -> str:
    header = "| reward | version | reads | verdict | worst pattern | wrong accepted | right refused "
    header += "| hangs on | s | exploit |"
    lines = [header, "|" + "---|" * 10]
    order = list(COLOURS)
    for name, row in sorted(
        rows.items(), key=lambda each: (order.index(each[1]["verdict"]), -each[1]["wrong"][0], each[0])
    ):
        worst, exploit = row["worst"], row.get("exploit")
        shown = f"{worst[0]} {worst[1]:.0%} ({worst[2]:.0%} to {worst[3]:.0%})" if worst[1] else "none"
        shares = [f"{row[key][0]:.1%} ({row[key][1]:.1%} to {row[key][2]:.1%})" for key in ("wrong", "refused")]
        text = "" if exploit is None else f"{_code(exploit['completion'])} for {_code(exploit['answer'], 30)}"
        what = row["what"] + ("; some answers not scored in 10 s" if row.get("unscored") else "")
        cells = [f"`{name}`", row["version"], what, row["verdict"], shown, *shares, _hangs(row)]
        lines.append("| " + " | ".join([*cells, f"{row.get('seconds', 0):.0f}", text]) + " |")
    return "\n".join(lines) + "\n"


def _hangs(row: Rows) -> str:
    return ", ".join(row["hangs"]) or "none" if "hangs" in row else "not tried"


def _plain(text: str) -> str:
    return " ".join(text.split())[:160].replace("<", "&lt;")


def _code(text: str, most: int = 60) -> str:
    line = " ".join(text.split()).replace("|", "¦").replace("`", "'")
    return f"`{line if len(line) <= most else '…' + line[-most:]}`" if line else "(nothing)"


def picture(rewards: Rows) -> str:
    """Accepted wrong answers against refused right ones, a dot for each reward, as SVG; smaller for reasoning-gym."""
    width, height, left, bottom = 640, 420, 60, 50

    def x(share: float) -> int:
        return round(left + share * (width - left - 20))

    def y(share: float) -> int:
        return round(height - bottom - share * (height - bottom - 20))

    font = 'font-family="sans-serif" font-size="12"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<path d="M{x(tick)},{y(0)}V{y(1)}M{x(0)},{y(tick)}H{x(1)}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(tick)}" y="{y(0) + 16}" text-anchor="middle">{tick:.0%}</text>')
        parts.append(f'<text x="{x(0) - 6}" y="{y(tick) + 4}" text-anchor="end">{tick:.0%}</text>')
    shown = groups(rewards)
    for radius, rows in ((2, shown["gym"]), (5, shown["checks"])):
        for name, row in rows.items():
            ring = ' stroke="black"' if package_of(name) == OURS else ""
            at = f'cx="{x(row["refused"][0])}" cy="{y(row["worst"][1])}" r="{radius}"'
            colour = f'fill="{COLOURS[row["verdict"]]}" fill-opacity="0.5"{ring}'
            parts.append(f"<circle {at} {colour}><title>{escape(name)}</title></circle>")
    middle = 'text-anchor="middle"'
    parts.append(f'<text x="{x(0.5)}" y="{height - 10}" {middle}>right answers refused</text>')
    turned = f'transform="translate(14,{y(0.5)}) rotate(-90)" {middle}'
    parts.append(f"<text {turned}>worst pattern of wrong answers accepted</text>")
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{summary(results)}{END}{after}", encoding="utf-8")
    TABLES.write_text(tables(results), encoding="utf-8")
    PICTURE.write_text(picture(results["rewards"]), encoding="utf-8")


if __name__ == "__main__":
    main()
