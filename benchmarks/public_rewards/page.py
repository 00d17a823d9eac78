"""Writes the tables and the picture of docs/public-rewards.md from the saved results.

python benchmarks/public_rewards/page.py
"""

import json
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "public_rewards.json"
PAGE, PICTURE = ROOT / "docs" / "public-rewards.md", ROOT / "docs" / "public-rewards.svg"
BEGIN, END = "<!-- tables of benchmarks/results/public_rewards.json -->\n", "<!-- end of the tables -->\n"
COLOURS = {"gameable": "#c0392b", "refuses right answers": "#7f8c8d", "sound": "#27762f"}
ALONE = "alone)"
"""How `what` ends for a reward that is not meant to tell right from wrong."""


def tables(results: dict[str, Any]) -> str:
    """All tables, as Markdown."""
    rewards = results["rewards"]
    parts = {
        "Rewards and graders": {n: r for n, r in rewards.items() if not n.startswith("reasoning-gym") and _measured(r)},
        "Scorers of reasoning-gym, each on its own task": {
            n: r for n, r in rewards.items() if n.startswith("reasoning-gym") and _measured(r)
        },
    }
    text = _summary(rewards)
    for heading, rows in parts.items():
        if rows:
            text += f"\n### {heading}\n\n{_table(rows)}"
    rest = {n: r for n, r in rewards.items() if not _measured(r)}
    if rest:
        text += (
            "\n### Not told apart\n\nThese pay right answers no more than empty ones in every form that was tried.\n\n"
        )
        text += "".join(f"- `{name}` {row['version']}: {row['what']}\n" for name, row in rest.items())
    text += "\n### Not called\n\n"
    text += "".join(f"- `{name}`: {_plain(why)}\n" for name, why in sorted(results["missing"].items()))
    return text


def _measured(row: dict[str, Any]) -> bool:
    return "worst" in row


def _summary(rewards: dict[str, Any]) -> str:
    meant = {n: r for n, r in rewards.items() if _measured(r) and not r["what"].endswith(ALONE)}
    lines = []
    for label, of_gym in (
        ("rewards and graders that are meant to check answers", False),
        ("scorers of reasoning-gym", True),
    ):
        rows = [row for name, row in meant.items() if name.startswith("reasoning-gym") == of_gym]
        if rows:
            counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in COLOURS}
            lines.append(
                f"Of {len(rows)} {label}, {counts['gameable']} accept a pattern of wrong answers in more than 5 % of "
                f"the problems; {counts['refuses right answers']} do not, but refuse more than a quarter of right "
                f"answers; {counts['sound']} do neither.\n"
            )
    return "\n".join(lines)


def _table(rows: dict[str, Any]) -> str:
    header = "| reward | version | reads | verdict | worst pattern | wrong accepted | right refused | exploit |"
    lines = [header, "|" + "---|" * 8]
    order = list(COLOURS)
    ranked = sorted(rows.items(), key=lambda item: (order.index(item[1]["verdict"]), -item[1]["wrong"][0], item[0]))
    for name, row in ranked:
        worst, exploit = row["worst"], row.get("exploit")
        shown = f"{worst[0]} {worst[1]:.0%} ({worst[2]:.0%} to {worst[3]:.0%})" if worst[1] else "none"
        shares = [f"{row[key][0]:.1%} ({row[key][1]:.1%} to {row[key][2]:.1%})" for key in ("wrong", "refused")]
        text = "" if exploit is None else f"{_code(exploit['completion'])} for {_code(exploit['answer'], 30)}"
        hangs = "; some answers not scored in 10 s" if row.get("hung") else ""
        cells = [f"`{name}`", row["version"], row["what"] + hangs, row["verdict"], shown, *shares, text]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return " ".join(text.split())[:160]


def _code(text: str, most: int = 60) -> str:
    line = " ".join(text.split()).replace("|", "¦").replace("`", "'")
    return f"`{line if len(line) <= most else '…' + line[-most:]}`" if line else "(nothing)"


def picture(rewards: dict[str, Any]) -> str:
    """Accepted wrong answers against refused right ones, a dot for each reward, as SVG."""
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
    for name, row in rewards.items():
        if _measured(row):
            at = f'cx="{x(row["refused"][0])}" cy="{y(row["worst"][1])}" r="4"'
            colour = f'fill="{COLOURS[row["verdict"]]}" fill-opacity="0.6"'
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
    PAGE.write_text(f"{before}{BEGIN}{tables(results)}{END}{after}", encoding="utf-8")
    PICTURE.write_text(picture(results["rewards"]), encoding="utf-8")


if __name__ == "__main__":
    main()
