"""From the bytes of a request to a checked body."""

from typing import TypeVar

from fastapi import Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from cooper_rl.data.strict_json import parse_json
from cooper_rl.service.refusal import Refusal
from cooper_rl.service.wire import Body

Checked = TypeVar("Checked", bound=Body)


async def read_body(request: Request, record: type[Checked]) -> Checked:
    """The body as a record. Raises Refusal: 400 if it is not UTF-8 or not JSON, 422 if it does not fit the record."""
    data = await request.body()
    return await run_in_threadpool(parse_body, data, record)


def parse_body(data: bytes, record: type[Checked]) -> Checked:
    """See `read_body`. An empty body stands for `{}`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the body is not UTF-8: {error}") from error
    try:
        values = parse_json(text) if text else {}
    except ValueError as error:
        raise Refusal(400, f"the body is not JSON: {error}") from error
    try:
        return record.model_validate(values)
    except ValidationError as error:
        raise Refusal(422, "\n".join(_describe(issue) for issue in error.errors(include_url=False)[:5])) from error


def _describe(issue: object) -> str:
    assert isinstance(issue, dict)
    place = ".".join(map(str, issue["loc"])) or "the body"
    return f"{place}: {str(issue['msg']).removeprefix('Value error, ')}"
