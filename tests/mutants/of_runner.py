"""A runner, what it shares with its host, and why it died: runtime/ring, runtime/runner, runtime/backtrace."""
from noticed_by import UNIT

MUTANTS = [
    # --- why a runner died
    ("trace: a path of two lines", "runtime/backtrace/backtrace.c",
     "!*plugin || strchr(plugin, '\\n') ||", '!*plugin ||', [UNIT("backtrace")]),
    ("trace: more lines than there is room for", "runtime/backtrace/backtrace.c",
     'if (*lines + count > BACKTRACE_LINES_MAX ||', 'if (!lines ||', [UNIT("backtrace")]),
    ("trace: a NUL in a request", "runtime/backtrace/backtrace.c",
     '|| memchr(bytes.data, 0, bytes.size) ||', '||', [UNIT("backtrace")]),
    ("trace: more output than was asked for", "runtime/backtrace/backtrace.c",
     '                        if (at == count)\n                                return;\n', '', [UNIT("backtrace")]),
    ("fault: a cause of any size", "runtime/ring/host_side.c",
     'ret->cause_size = cause <= strlen(ret->text) ? cause : 0;', 'ret->cause_size = cause;', [UNIT("ring_hostile")]),

    # --- a seat that is woken ahead of a task
    ("ring: a seat that was woken ahead of its task sleeps again", "runtime/ring/runner_side.c",
     "started_ns >= SHORT_NS && !is_expected)", "started_ns >= SHORT_NS)", [UNIT("ring_polls")]),
    ("ring: a second seat is woken beside one that polls", "runtime/ring/host_side.c",
     "if (!atomic_load_explicit(&h->seats_asleep, memory_order_relaxed) ||\n"
     "                atomic_load_explicit(&h->seat_is_looking, memory_order_relaxed))",
     "if (!atomic_load_explicit(&h->seats_asleep, memory_order_relaxed))", [UNIT("ring_polls")]),

    # --- headers of bytes
    ("ring: a header without its end", "runtime/ring/pack.c", "!size || header.value[size - 1] ||", "!size ||", [UNIT("pack")]),
    ("ring: a text header with a NUL inside", "runtime/ring/pack.c",
     "(!header.is_bytes && strnlen(header.value, size) != size - 1)", "false", [UNIT("pack")]),
    ("follow-up: headers of any stride", "runtime/runner/followup.c",
     "if (submit->headers2_count && submit->headers2_stride < offsetof(struct qv_header2, is_bytes))", "if (false)",
     [UNIT("runner_followup")]),
    ("follow-up: more headers than a task may have", "runtime/runner/followup.c",
     "if (submit->headers2_count > QV_HEADERS_MAX - submit->headers_count)", "if (false)", [UNIT("runner_followup")]),
    ("runner: bytes among the texts", "runtime/runner/seat_task.c", "                if (!header.is_bytes)\n", "                if (true)\n",
     [UNIT("runner_seat")]),

    # --- LATER
    ("ring: a seat that polled leaves the others asleep", "runtime/ring/runner_side.c",
     "if (!has_cells(h) || !atomic_load(&h->seats_asleep))\n                return;", "return;", [UNIT("ring_polls")]),
    ("ring: a runner may not say LATER", "runtime/ring/host_side.c",
     "outcome <= OUTCOME_UNAVAILABLE) || outcome == OUTCOME_LATER ||", "outcome <= OUTCOME_UNAVAILABLE) ||",
     [UNIT("runner_seat")]),

    # --- the runner's last look, and the seat
    ("runner: no last look at the lease", "runtime/runner/seat.c",
     "        if (!leases_allow(&s->runner->leases, task->lease, task->fence_epoch, now_ns))\n"
     "                return \"not started: the lease of its shard had run out\";\n", "",
     [UNIT("runner_seat"), UNIT("runner_process")]),
    ("lease page: the deadline", "runtime/ring/leases.c", "return now_ns < until_ns && ", "return until_ns && ",
     [UNIT("ring"), UNIT("runner_seat"), UNIT("ring_seats")]),
    ("lease page: the epoch", "runtime/ring/leases.c",
     "return now_ns < until_ns && atomic_load_explicit(&l->slots[index].epoch, memory_order_acquire) == epoch;",
     "return now_ns < until_ns;", [UNIT("ring"), UNIT("runner_seat"), UNIT("ring_seats")]),
    ("seat: what follows one that is not done", "runtime/runner/seat.c",
     "is_over |= s->outcomes[i] != QV_DONE;", "", [UNIT("runner_seat")]),
    ("seat: over for other keys, too", "runtime/runner/seat.c",
     "is_over &= follows(s, index);", "", [UNIT("runner_seat")]),
    ("ring: a cell starts its entry's next task", "runtime/ring/runner_side.c",
     "        if ((ticket & 0xffff) != cell.ticket)\n                return false;\n", "", [UNIT("ring")]),
    ("seat: started without winning the entry", "runtime/ring/runner_side.c",
     "        if (!atomic_compare_exchange_strong_explicit(&e->word, &word, RING_WORD(ticket, seat, ENTRY_STARTED),\n"
     "                    memory_order_acq_rel, memory_order_relaxed))\n                return false;",
     "        atomic_store(&e->word, RING_WORD(ticket, seat, ENTRY_STARTED));", [UNIT("ring_seats")]),
    ("seat: started though it was taken back", "runtime/ring/runner_side.c",
     "        if (RING_WORD_STATE(word) != ENTRY_QUEUED)\n                return false;\n        uint64_t ticket", "        uint64_t ticket",
     [UNIT("ring"), UNIT("ring_seats"), UNIT("ring_load")]),
    ("ring: an answer for another task", "runtime/ring/host_side.c",
     "if (ticket != r->flights[index].ticket || reply.ticket != ticket || !is_runner_outcome(reply.outcome))",
     "if (!is_runner_outcome(reply.outcome))", [UNIT("ring_hostile"), UNIT("ring")]),
]
