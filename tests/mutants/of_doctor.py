"""What `quiver doctor` makes of figures: runtime/cli/doctor."""
from noticed_by import UNIT

JUDGED = [UNIT("doctor")]
MUTANTS = [
    ("doctor: a Redis that evicts tasks", "runtime/cli/doctor/judge_redis.c", '!strncmp(r->policy, "allkeys", 7)', "false", JUDGED),
    ("doctor: a Redis that keeps nothing", "runtime/cli/doctor/judge_redis.c", "r->has_save && !r->save[0]", "false", JUDGED),
    ("doctor: open to everybody", "runtime/cli/doctor/judge_redis.c",
     '!strcmp(r->protected_mode, "no") && !is_bound_here(r->bind)', "false", JUDGED),
    ("doctor: an operator's user is wrong", "runtime/cli/doctor/judge_redis.c",
     "d->operator.is_known && !d->operator.lacking.count", "false", JUDGED),
    ("doctor: doubt about a clock", "runtime/cli/doctor/judge.c", "off_ms > doubt_ms ? off_ms - doubt_ms : 0", "off_ms", JUDGED),
    ("doctor: a host that is silent", "runtime/cli/doctor/judge.c", "h->silent_ms > 2 * h->refresh_ms", "false", JUDGED),
    ("doctor: no inodes are left", "runtime/cli/doctor/judge_machine.c", "|| inodes < FREE_ERROR_PART", "", JUDGED),
    ("doctor: what a server says acts on the terminal", "runtime/cli/doctor/findings.c", ".text = clean(text)",
     ".text = text_copy(text)", JUDGED),
]
