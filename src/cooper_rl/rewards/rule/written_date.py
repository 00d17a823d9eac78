"""Dates and times in answers: one canonical form for every unambiguous way to write one."""

import re

_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_NAMES = {name: number for number, name in enumerate(_MONTHS, start=1)}
_NAMES |= {name[:3]: number for name, number in _NAMES.items()} | {"sept": 9}
_MONTH = rf"(?P<month>{'|'.join(sorted(_NAMES, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s*\b(?P<year>\d{4}))?"
_WRITTEN = (
    re.compile(rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}\b(?!\d|:){_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}(?P<day>),?\s+(?:of\s+)?(?P<year>\d{{4}})\b", re.IGNORECASE),
    re.compile(r"(?<![\d-])(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?![\d-])"),
)
_NAMED_TIME = {"noon": "12:00 pm", "midnight": "0:00 am"}
_TIME = re.compile(
    r"(?<![\w:.])(?:(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d))?(?:\s*(?P<half>[ap])\.?m\b\.?)?(?![\w:]|\.\d)|(?P<name>noon|midnight)\b)",
    re.IGNORECASE,
)
_HAS_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b", re.IGNORECASE)


def names_month(text: str) -> bool:
    """Whether `text` names a month."""
    return bool(_HAS_MONTH.search(text))


def with_iso_dates(text: str) -> str:
    """`text` with dates as year-month-day: "Jan. 5th, 2024", "5 January 2024" and "2024/1/5" become `2024-01-05`.

    A missing year or day is left empty (`-01-05`, `2024-01-`). Dates such as 1/5/2024 stay as they are, because
    either figure may be the month.
    """
    for pattern in _WRITTEN:
        text = pattern.sub(_iso, text)
    return text


def _iso(date: re.Match[str]) -> str:
    month = _NAMES.get(date["month"].lower()) or int(date["month"])
    day = int(date["day"] or 0)
    if not 1 <= month <= 12 or day > 31:
        return date.group()
    return f"{date['year'] or ''}-{month:02}-{f'{day:02}' if day else ''}"


def with_clock_times(text: str) -> str:
    """`text` with times by a clock of 12 hours: `21:00`, `9 pm` and `9:00 P.M.` become `9:00 pm`.

    `9:00` stays as it is, because it may be either half of the day; `09:00` is in the first one.
    """
    return _TIME.sub(_clock, text)


def _clock(time: re.Match[str]) -> str:
    if time["name"]:
        return _NAMED_TIME[time["name"].lower()]
    hour, minute, half = int(time["hour"]), time["minute"], (time["half"] or "").lower()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif half or minute is None or hour > 23 or not (hour > 12 or time["hour"][0] == "0"):
        return time.group()
    return f"{hour if hour <= 12 else hour - 12}:{minute or '00'} {'am' if hour < 12 else 'pm'}"
