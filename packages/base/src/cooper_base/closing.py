"""Objects that release something at the end of a `with` statement."""

from typing import Self


class Closing:
    """Closed at the end of a `with` statement, also by an exception in it. A subclass implements `close`."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
