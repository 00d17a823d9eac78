"""The pages of the settings, made from the configuration records: a page a command, and one for the kinds of parts."""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module

from cooper_base.config.base import Config, Kinds, kinds_of, records_of
from cooper_base.config.explanation import Setting, explain
from cooper_rl.cli.config import RECORDS, Command

TITLES = {
    Command.train: "A run",
    Command.serve: "cooper serve",
    Command.eval: "cooper eval",
    Command.verifyrm_collect: "cooper verifyrm collect",
    Command.verifyrm_label: "cooper verifyrm label",
    Command.verifyrm_train: "cooper verifyrm train",
    Command.verifyrm_bench: "cooper verifyrm bench",
}
ABOUT = """# Settings

Every setting of every command, with its type, its bounds, its default and its meaning. These pages are made from the \
records that check a configuration. `cooper config` prints the same in a terminal, and `cooper config --json-schema` \
gives it to an editor. [Configuration](../configuration.md) tells how files, kinds of run and overrides work together.

"""
KINDS = """# Kinds of parts

A part of a configuration begins with its `kind`, and has the settings of that kind. Besides the kinds below, \
`kind: package.module:Class` names [a part of your own](../extending.md).

"""


def settings_pages() -> dict[str, str]:
    """Every page by its place in the site."""
    records = {command: _record(path) for command, path in RECORDS.items()}
    kinds = {_choice(one): one for record in records.values() for one in _registries(record, ())}
    links = "".join(f"- [{TITLES[command]}]({command}.md)\n" for command in Command)
    pages = {
        "settings/index.md": f"{ABOUT}{links}- [Kinds of parts](kinds.md)\n",
        "settings/kinds.md": KINDS + "\n".join(_kinds_section(one, kinds) for one in kinds.values()),
    }
    for command, record in records.items():
        about = f"# {TITLES[command]}\n\n{_text(record.__doc__ or '')}\n\n"
        pages[f"settings/{command}.md"] = about + _page(record, kinds)
    return pages


def _record(path: str) -> type[Config]:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _registries(record: type[Config], around: tuple[type[Config], ...]) -> Iterator[Kinds]:
    """Every registry of kinds that a record and the records inside it name."""
    for field in record.model_fields.values():
        if (kinds := kinds_of(field)) is not None:
            yield kinds
        for inner in records_of(field):
            if inner not in (record, *around):
                yield from _registries(inner, (record, *around))


def _page(record: type[Config], kinds: dict[tuple[str, ...], Kinds]) -> str:
    """Settings at the top level first, then section by section."""
    settings = _without_kinds(explain(record), kinds)
    sections: dict[str, list[Setting]] = {}
    for one in settings:
        sections.setdefault(re.split(r"[.\[]", one.key)[0], []).append(one)
    alone = [one for group in sections.values() for one in group if len(group) == 1]
    known: dict[tuple[tuple[str, str], ...], str] = {}
    parts = ["## Top level\n\n", *(_entry(one, kinds) for one in alone)] if alone else []
    for name, (head, *inside) in ((name, group) for name, group in sections.items() if len(group) > 1):
        parts.append(f"## {name}\n\n{_line(head, kinds)}{_text(head.text)}\n\n")
        content = tuple((re.sub(r"^[\w<>]+(\[\]|\.<name>)?\.", "", one.key), one.values + one.text) for one in inside)
        if content in known:
            parts.append(f"Its settings are those of [`{known[content]}`](#{known[content]}).\n\n")
        else:
            known[content] = name
            parts += [_entry(one, kinds) for one in inside]
    return "".join(parts)


def _kinds_section(kinds: Kinds, known: dict[tuple[str, ...], Kinds]) -> str:
    parts = [f"## {kinds.noun.capitalize()} {{ #{_anchor(kinds.noun)} }}\n\n"]
    for kind, record in kinds.records.items():
        parts.append(f"### {kind} {{ #{_anchor(kinds.noun)}.{kind} }}\n\n{_text(record.__doc__ or '')}\n\n")
        settings = _without_kinds(explain(record, kind=kind), known)
        parts += [_entry(one, known, f"{_anchor(kinds.noun)}.{kind}.") for one in settings]
    return "".join(parts)


def _without_kinds(settings: Sequence[Setting], kinds: dict[tuple[str, ...], Kinds]) -> list[Setting]:
    """The settings without those inside parts of a registry, which the page of the kinds has."""
    keys = [one.key for one in settings if _kinds_named(one, kinds) is not None]
    return [one for one in settings if not any(_is_of_a_kind(one, key) for key in keys)]


def _is_of_a_kind(setting: Setting, key: str) -> bool:
    """Whether it is the heading of one of the kinds of `key`, or a setting of one."""
    rest = setting.key.removeprefix(key)
    return not setting.values if setting.key == key else setting.key.startswith(key) and rest[0] in ".["


def _kinds_named(setting: Setting, kinds: dict[tuple[str, ...], Kinds]) -> Kinds | None:
    """The registry whose parts the setting holds."""
    found = re.search(r"section of kind ([^,;]*?)(?: or null)?(?:[,;]|$)", setting.values)
    return kinds.get(tuple(found[1].split(" | "))) if found else None


def _choice(kinds: Kinds) -> tuple[str, ...]:
    return (*kinds.records, kinds.outside)


def _entry(setting: Setting, kinds: dict[tuple[str, ...], Kinds], prefix: str = "") -> str:
    """One setting under a heading of its own, so that it can be linked to and found by the search."""
    place = f"{prefix}{setting.key}{f':{setting.kind}' if setting.kind and not prefix else ''}"
    name = f"{setting.key} (kind: {setting.kind})" if setting.kind and not prefix else setting.key
    return f"#### {_escaped(name)} {{ #{_anchor(place)} .setting }}\n\n{_line(setting, kinds)}{_text(setting.text)}\n\n"


def _line(setting: Setting, kinds: dict[tuple[str, ...], Kinds]) -> str:
    """Type, bounds and default. Kinds of parts are a link to their page."""
    if not setting.values:
        return ""
    values, _, default = setting.values.rpartition("; ")
    if not values:
        values, default = default, ""
    if (named := _kinds_named(setting, kinds)) is not None:
        link = f"section of a [kind of {named.noun}](kinds.md#{_anchor(named.noun)})"
        values = re.sub(r"section of kind .*", link, values)
    values = values if "](" in values else _escaped(values)
    word, _, value = default.partition(" ")
    shown = "" if not default else f" · default `{value}`" if word == "default" else f" · **{default}**"
    return f"*{values}*{shown}\n{{ .values }}\n\n"


def _text(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]<>_*|])", r"\\\1", text)


def _anchor(text: str) -> str:
    return re.sub(r"[^\w.:-]+", "-", text.replace("[]", "").replace(".<name>", "")).strip("-")
