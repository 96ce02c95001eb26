"""Tasks on other hosts' seats: runtime/host/lend, and what runtime/host/remote, host/shard and worker do for it."""
from noticed_by import UNIT

MESSAGE, OUTCOME = "runtime/host/lend/lend_message.c", "runtime/host/lend/seat_outcome.c"
LENDER, BORROWER = "runtime/host/lend/lender.c", "runtime/host/lend/borrower.c"
SEATS, WINDOW = "runtime/host/remote/remote_seats.c", "runtime/host/shard/window.c"

MUTANTS = [
    # --- what is read from a mailbox and a control list
    ("lend: another byte order", MESSAGE, "|| reader_u32(&r) != ORDER_MARK)", "|| !reader_u32(&r))", [UNIT("lend_message")]),
    ("lend: any host name", MESSAGE, "|| !is_host(m.host))", ")", [UNIT("lend_message")]),
    ("lend: no seat is offered", MESSAGE, "m->seats < 1 || ", "", [UNIT("lend_message")]),
    ("lend: any number of seats", MESSAGE, " || m->seats > LEND_SEATS_MAX", "", [UNIT("lend_message")]),
    ("lend: any worker's name", MESSAGE, "if (*m->worker && worker_name_check(span_of_text(m->worker), NULL) < 0)",
     "if (false)", [UNIT("lend_message")]),
    ("lend: an id of another shard", MESSAGE, " || shard != m->shard)", ")", [UNIT("lend_message")]),
    ("lend: a start without an epoch", MESSAGE, "if (!m->fence.epoch || ", "if (", [UNIT("lend_message")]),
    ("lend: a seq of no lane", MESSAGE, " || m->fence.seq > STORE_SEQ_MAX", "", [UNIT("lend_message")]),
    ("lend: a lane that is none", MESSAGE, "lane >= LANES || ", "", [UNIT("lend_message")]),
    ("lend: a start for ever", MESSAGE, "m->ttl_ms > LEND_TTL_MAX ||", "", [UNIT("lend_message")]),
    ("lend: a checkpoint of any size", MESSAGE, " || m->checkpoint.size > NOTE_CHECKPOINT_MAX", "", [UNIT("lend_message")]),
    ("lend: another task than its id says", MESSAGE, " || !span_is(m->task.id, span_of_text(m->id))", "", [UNIT("lend_message")]),
    ("lend: a task with a key", MESSAGE, "if (!m->is_worker && m->task.key.size &&", "if (false && m->task.key.size &&",
     [UNIT("lend_message")]),
    ("lend: something behind the message", MESSAGE, "if (r.is_bad || r.size)", "if (r.is_bad)", [UNIT("lend_message")]),
    ("seat outcome: unknown ones", OUTCOME, " || !is_outcome(outcome))", ")", [UNIT("lend_message")]),
    ("seat outcome: the handler said something else", OUTCOME, " || o.reply.outcome != (int32_t)outcome ||", " ||", [UNIT("lend_message")]),
    ("seat outcome: a pause for ever", OUTCOME, "o.reply.retry_after_ms > TASK_NUMBER_MAX", "false", [UNIT("lend_message")]),
    ("seat outcome: done, and nobody said so", OUTCOME, "if (o.outcome == OUTCOME_DONE && !o.has_reply)", "if (false)", [UNIT("lend_message")]),
    ("seat outcome: an error of any length", OUTCOME, " && strlen(o->error) <= NOTE_TEXT_MAX", "", [UNIT("lend_message")]),
    ("seat holder: any nonce", "runtime/worker/fence.c", " ||\n                !units_hex_read(holder.data, hex, ret_nonce, STORE_NONCE_SIZE))", ")",
     [UNIT("lend_message")]),

    # --- which tasks are lent
    ("lend: tasks with a key", WINDOW, "return span_is(c->key, c->id) && c->trust", "return c->trust", [UNIT("remote_seats")]),
    ("lend: suspects", WINDOW, "c->trust == TRUST_FULL && !c->hosts_died", "!c->hosts_died", [UNIT("remote_seats")]),
    ("lend: with which a host died", WINDOW, "c->trust == TRUST_FULL && !c->hosts_died", "c->trust == TRUST_FULL", [UNIT("remote_seats")]),
    ("lend: to the next seat after one fell silent", WINDOW, "!c->is_for_owner && ", "", [UNIT("remote_seats")]),
    ("lend: what has just come", WINDOW, " && c->claimed_ms <= before_ms", "", [UNIT("remote_seats")]),
    ("lend: what fits into no message", WINDOW, " &&\n               c->payload.size + c->checkpoint.size <= WINDOW_LEND_BYTES", "",
     [UNIT("remote_seats")]),
    ("lend: of a handler that keeps its tasks", SEATS, "generation->settings->spread && !handler->all->is_leaving", "!handler->all->is_leaving",
     [UNIT("remote_seats")]),
    ("lend: of a handler that is paused", "runtime/host/handler/dispatch.c",
     "        struct dispatch_pool *p = &d->pools[pool];\n        if (p->is_paused)\n                return NULL;\n",
     "        struct dispatch_pool *p = &d->pools[pool];\n", [UNIT("remote_seats")]),

    ("lend: a count of those without a key that stays", WINDOW, "        line->unkeyed -= key->is_unkeyed;\n", "", [UNIT("remote_seats")]),
    ("lend: nothing that is not the first of its line", WINDOW, "                if (!key->is_unkeyed)\n                        continue;\n                --*left;",
     "                --*left;", [UNIT("remote_seats")]),
    ("lend: what waits in the store for a worker", "runtime/host/handler/dispatch.c", "        if (!d->pools[pool].may_be_stored)\n", "        if (true)\n",
     [UNIT("remote")]),
    ("lend: looks for what is stored for ever", "runtime/host/handler/dispatch.c", "        d->pools[pool].may_be_stored = false;\n", "", [UNIT("remote")]),
    ("lender: counts over and over", LENDER, "(is_said ? LENDER_REST_MS : LENDER_LOOK_MS)", "LENDER_LOOK_MS", [UNIT("lender")]),
    ("lender: who asked in vain has nothing counted", LENDER, "        l->look_ms = 0;\n}", "}", [UNIT("lender")]),
    ("pool: what stands behind a long task stays there", "runtime/host/pool/pool_watch.c", "if (s->is_started || (!can_move && !is_behind) || ",
     "if (s->is_started || !can_move || ", [UNIT("pool_watch")]),
    ("pool: what has a free seat before it is taken back", "runtime/host/pool/pool_watch.c", " && !runner->is_solo && !has_moving_seat(pool, event, now_ms);",
     " && !runner->is_solo;", [UNIT("pool_watch")]),
    ("pool: back to the busy runner after a while", "runtime/host/pool/pool_watch.c", "can_move ? now_ms + POOL_SHUT_MS : UINT64_MAX;",
     "now_ms + POOL_SHUT_MS;", [UNIT("pool_watch")]),

    # --- how they come back
    ("seats: an older start is listened to", SEATS, "if (!lent || !remote_is_current(lent, &outcome.fence, control->id)) {", "if (!lent) {",
     [UNIT("remote_seats")]),
    ("seats: another start is declined", SEATS, "if (!lent || !remote_is_current(lent, fence, id))", "if (!lent)", [UNIT("remote_seats")]),
    ("seats: a worker speaks for one", "runtime/host/remote/remote_io.c", "if (!lent || lent->is_seat || ", "if (!lent || ", [UNIT("remote_seats")]),
    ("seats: its silence counts as a worker's", "runtime/host/remote/remote_io.c", "c->silences += !lent->is_seat;", "c->silences++;",
     [UNIT("remote_seats")]),
    ("seats: nobody tells it to stop", "runtime/host/remote/remote_io.c", "if (lent->is_handed && lent->is_seat)", "if (false)", [UNIT("remote_seats")]),
    ("seats: a new owner does not wait for it", "runtime/host/shard/lent.c",
     "bool is_seat = seat_holder_parse(task->note.holder, &fence, nonce, &worker);", "bool is_seat = false;", [UNIT("remote_seats")]),

    # --- who wants seats, and who asks
    ("lender: at once", LENDER, "l->look_ms = now_ms + LENDER_AFTER_MS;", "l->look_ms = now_ms;", [UNIT("lender")]),
    ("lender: as often as it likes", LENDER, "if (l->is_telling || now_ms < paced_ms)", "if (l->is_telling)", [UNIT("lender")]),
    ("lender: who asked in vain is not rung", LENDER, " || (is_wanting && l->is_in_vain)", "", [UNIT("lender")]),
    ("lender: it is forgotten while it wants", LENDER, "return is_news || is_old;", "return is_news;", [UNIT("lender")]),
    ("lender: a failed write is believed", LENDER, "l->is_told = is_done ? l->is_telling_of : !l->is_telling_of;", "l->is_told = l->is_telling_of;",
     [UNIT("lender")]),
    ("borrower: reads though no seat is free", BORROWER, " &&\n                has_free(b, seats, seats_count))", ")", [UNIT("borrower")]),
    ("borrower: reads as often as it is rung", BORROWER, "(!b->listed_ms || now_ms >= b->listed_ms + BORROWER_LIST_MS)", "true", [UNIT("borrower")]),
    ("borrower: a seat is offered twice", BORROWER, "offered += b->asks[i].slot == seats->slot ? b->asks[i].seats : 0;", "offered += 0;", [UNIT("borrower")]),
    ("borrower: asks again who has nothing", BORROWER, "want->slot != slot || want->is_tried || ", "want->slot != slot || ", [UNIT("borrower")]),
    ("borrower: waits for ever for an answer", BORROWER, "if (now_ms >= b->asks[i].until_ms)", "if (false)", [UNIT("borrower")]),

    # --- each start is taken once
    ("borrower: a start that comes twice", BORROWER, "        return is_new;", "        return is_new || true;", [UNIT("borrower")]),
    ("borrower: a start of an older epoch", BORROWER, "if (fence->epoch < starts->epoch)", "if (false)", [UNIT("borrower")]),
    ("borrower: starts do not count anew", BORROWER, "if (fence->epoch > starts->epoch)", "if (!starts->epoch)", [UNIT("borrower")]),
    ("borrower: a start of long ago", BORROWER, "return starts->start - fence->start < BORROWER_STARTS && ", "return ", [UNIT("borrower")]),
    ("borrower: the start before in that place", BORROWER, "starts->has_come[starts->start % BORROWER_STARTS / 8] &= (uint8_t)(0xffu ^ 1u << starts->start % 8);",
     "", [UNIT("borrower")]),
    ("borrower: all starts before a gap", BORROWER, "                memset(starts->has_come, 0, sizeof(starts->has_come));\n", "", [UNIT("borrower")]),

    # --- how long a borrowed task may run
    ("borrowed: starts past its deadline", BORROWER, " && !t->is_told_to_stop && now_ms < t->until_ms;", " && !t->is_told_to_stop;", [UNIT("borrower")]),
    ("borrowed: its deadline is the recorded one", BORROWER, "uint64_t until_ms = t->sent_ms + left_ms - left_ms / 10;",
     "uint64_t until_ms = t->sent_ms + left_ms;", [UNIT("borrower")]),
    ("borrowed: a store may say any time", BORROWER, "        left_ms = min_u64(left_ms, t->ttl_ms);\n", "", [UNIT("borrower")]),
    ("borrowed: it is not stopped at its deadline", BORROWER, "if (now_ms >= t->until_ms && !t->is_told_to_stop) {", "if (false) {", [UNIT("borrower")]),
    ("borrowed: another start by now, and it runs on", BORROWER, "t->until_ms = 0; /* it is stopped", "; /* it is stopped", [UNIT("borrower")]),
    ("borrowed: two calls at once", BORROWER,
     "        case BORROWED_TELLING:\n                if (t->is_calling || now_ms < t->call_ms)", "        case BORROWED_TELLING:\n                if (now_ms < t->call_ms)",
     [UNIT("borrower")]),
]
