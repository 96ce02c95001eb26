from typing import Any, Callable, Literal, NoReturn, Optional, Union

class Outcome(Exception):
    kind: str
    fields: dict[str, Any]
    def __init__(
        self, kind: Literal["reject", "retry", "later", "limited", "unavailable"], why: str = "", *, after_ms: int = ...
    ) -> None: ...

class ServiceError(Exception):
    error: str  # "ETIMEDOUT", for example
    def __init__(self, service: str, error: str, text: str) -> None: ...

class Task:
    """What handle() gets.  For types only: import it under TYPE_CHECKING."""
    id: str
    key: str
    handler: str
    lane: Literal["low", "normal", "high"]
    attempt: int
    attempts_max: int
    crashes: int
    submitted_ms: int
    fence_epoch: int
    fence_start: int
    deadline_ms: int  # left at the start; there only if the handler has a timeout
    payload: bytes
    checkpoint: bytes  # of an earlier attempt; empty: none
    headers: dict[str, Union[str, bytes]]  # bytes: it was submitted as bytes
    fields: dict[str, str]
    def tell(
        self,
        kind: Literal["log", "result", "submit", "checkpoint", "progress"],
        body: Union[bytes, str] = b"",
        **fields: Any,
    ) -> None: ...
    def trylock(self, name: str, ttl_ms: int) -> Optional[int]: ...  # its fencing token; None: somebody else has it
    def unlock(self, name: str, token: int) -> bool: ...  # False: it was no longer held
    def next_id(self) -> int: ...
    def room_append(self, room: str, data: Union[bytes, str]) -> int: ...  # the entry's number

def serve(handle: Callable[[Task], Union[bytes, str, None]]) -> NoReturn: ...
