"""The JSON Schema of a configuration record, with which an editor completes, explains and checks its YAML."""

from typing import Any

from cooper_rl.config.base import Config

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(record: type[Config], title: str) -> dict[str, Any]:
    """The schema of a file with these settings.

    It knows names, types, bounds, defaults and kinds, and explains each setting with the text under its field. Parts
    from outside the package, and rules about several settings at once, are checked only when the file is read.
    """
    schema = _readable(record.model_json_schema())
    return {"$schema": DIALECT, "title": title, **schema}


def _readable(schema: Any) -> Any:
    """The schema without pydantic's titles, which repeat the names, and with each paragraph of text on one line."""
    if isinstance(schema, list):
        return [_readable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _readable(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    if isinstance(text := kept.get("description"), str):
        kept["description"] = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return kept
