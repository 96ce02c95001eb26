"""What a worker of the pipe plugin asks and is answered: plugins/pipe."""
from noticed_by import UNIT

PIPE, FRAME = "plugins/pipe/pipe.c", "plugins/pipe/frame.c"

MUTANTS = [
    ("pipe: a ttl that is no number is 0", PIPE, 'if (frame_get_number(&call->frame, "ttl_ms", 0, &ttl_ms) < 0)',
     'if (frame_get_number(&call->frame, "ttl_ms", 0, &ttl_ms) > 0)', [UNIT("pipe")]),
    ("pipe: an unlock needs no token", PIPE, '!frame_get(&call->frame, "token") || ', "", [UNIT("pipe")]),
    ("pipe: a lock needs no name", PIPE, 'if (!name)\n                return breach(call, "sent an unlock frame without a name");', "",
     [UNIT("pipe")]),
    ("pipe: a refusal is a value", FRAME, "if (status < 0)\n                put_field(out, \"error\"", "if (status > 0)\n                put_field(out, \"error\"",
     [UNIT("pipe")]),
    ("pipe: an error that plugin.h does not name has no name", FRAME, 'return "EIO";', 'return "";', [UNIT("pipe")]),
]
