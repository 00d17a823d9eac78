"""Replies from outside within bounds: of the time from the first byte sent to the last one read, and of the bytes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

R = TypeVar("R")


class OversizedError(Exception):
    """The body of a reply is longer than it may be."""


async def bounded_reply(
    opening: AbstractAsyncContextManager[R], chunks: Callable[[R], AsyncIterator[bytes]], total_s: float, most: int
) -> tuple[R, bytes]:
    """The response of a streaming request and its body, which `chunks` gives in parts.

    An HTTP client's own timeout restarts with every part, so a server that sends slowly never reaches it. Raises
    TimeoutError after `total_s` seconds, whatever the server does, OversizedError for more than `most` bytes, and what
    the client raises.
    """
    async with asyncio.timeout(total_s), opening as response:
        body = await read_to(chunks(response), most)
    if len(body) > most:
        raise OversizedError(f"the response exceeds {most} bytes")
    return response, body


async def read_to(chunks: AsyncIterator[bytes], most: int) -> bytes:
    """Reading stops once there are more than `most` bytes."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most:
            break
    return bytes(body)
