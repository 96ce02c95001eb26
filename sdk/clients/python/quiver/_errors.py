"""What a client raises: each says whether the same call may be made again."""


class QuiverError(Exception):
    """The base of all that is raised here."""


class Refused(QuiverError):
    """Nothing was stored, and the same call will be refused again: `status` is the HTTP status that goes with it."""

    def __init__(self, text: str, status: int = 400, id: "str | None" = None) -> None:
        super().__init__(text)
        self.status = status
        self.id = id  # of the task that is there already (409)


class Retry(QuiverError):
    """Nothing was stored; the same call may succeed later: the backlog is full, or nobody is there."""


class Unknown(QuiverError):
    """Whether it was stored is not known.  Only a call with an idempotency key may be repeated without a second task."""
