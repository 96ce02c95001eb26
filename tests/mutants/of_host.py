"""A host without its shards, and its guard: runtime/host, runtime/guard."""
from noticed_by import CONTRACT, SIM, UNIT

MUTANTS = [
    ("status: a slot's rates are those of the one before", "runtime/host/report/handler_report.c",
     'if (strcmp(report->name, handler->name) != 0) {', 'if (!*report->name) {', [UNIT("metrics")]),
    ("status: durations of all times", "runtime/host/report/handler_report.c",
     'if (now_ms - report->turned_ms < HANDLER_REPORT_MS)', 'if (true)', [UNIT("metrics")]),
    # --- why a runner died
    ("stderr: lines of earlier tasks", "runtime/host/pool/stderr_tail.c",
     'if (line->at_ms >= since_ms && !i--)', 'if (!i--)', [UNIT("blame_text")]),
    ("stderr: what acts on a terminal", "runtime/host/pool/stderr_tail.c",
     "(unsigned char)line[n] < ' ' || line[n] == 0x7f ? ' ' : line[n]", 'line[n]', [UNIT("blame_text")]),

    # --- an order to reload
    ("reload order: any host's", "runtime/host/handler/reload_order.c",
     "if (!span_is(items[i].name, span_of_text(name)) || !is_token(token) ||", "if (!is_token(token) ||",
     [UNIT("reload_order")]),
    ("reload order: any token", "runtime/host/handler/reload_order.c",
     "|| !is_token(token) ||", "||", [UNIT("reload_order")]),
    ("reload order: carried out again and again", "runtime/host/handler/reload_order.c",
     "||\n                        span_is(token, span_of_text(order->token)))", ")", [UNIT("reload_order")]),
    ("reload order: an older order's answer", "runtime/host/handler/reload_order.c",
     "if (number != order->number)", "if (!number)", [UNIT("reload_order")]),
    ("reload order: cut anywhere", "runtime/host/handler/reload_order.c",
     "while (size && ((unsigned char)from[size] & 0xc0) == 0x80)", "while (!size)", [UNIT("reload_order")]),

    # --- what was done last
    ("done: a document of any length", "runtime/host/report/done_document.c",
     "if (d->tasks.size + kinds + TASK_BYTES > max)", "if (!max)", [UNIT("done_tasks")]),
    ("done: a document claims more than it has", "runtime/host/report/done_document.c",
     "if (task && task->at_ms > since_ms)", "if (!task)", [UNIT("done_tasks")]),
    ("done: of any age", "runtime/host/report/done_document.c",
     "if (ago_ms(task->at_ms, now_ms) > age_ms || head", "if (head", [UNIT("done_tasks")]),
    ("done: any id of a predecessor", "runtime/host/report/done_document.c",
     " || task_id_check(id, NULL, NULL) < 0", "", [UNIT("done_tasks")]),
    ("done: a killed predecessor knew all", "runtime/host/report/done_document.c",
     'if (json_is_true(json_object_get(said, "is_last")))', "if (said)", [UNIT("done_tasks")]),

    # --- metrics
    ("metrics: a shard past its deadline", "runtime/host/report/backlog.c",
     "return shard_is_held(s) && now_ms < s->until_ms;", "return shard_is_held(s);", [UNIT("backlog")]),
    ("metrics: what was counted under another lease", "runtime/host/report/backlog.c",
     "is_recent && found->lease_number == s->lease_number", "is_recent", [UNIT("backlog")]),
    ("metrics: everybody exports what nobody owns", "runtime/host/report/backlog.c",
     "bool is_left = !is_owned && is_leading && is_recent", "bool is_left = !is_owned && is_recent", [UNIT("backlog")]),
    ("metrics: old counts", "runtime/host/report/backlog.c",
     "found->counted_ms && now_ms < found->counted_ms + BACKLOG_OLD_MS", "found->counted_ms", [UNIT("backlog")]),

    # --- who else could have written what a host runs
    ("trust: a plugin is taken anyway", "runtime/host/handler/plugin_copy.c", "source == PLUGIN_TRUSTED && trust.verdict != FILE_TRUST_SOUND",
     "false", [UNIT("plugin_copy")]),

    # --- workers outside
    ("workers: handed out before the start is durable", "runtime/host/remote/remote_io.c",
     "        if (!lent->told_ms)\n                return;\n", "", [UNIT("remote")]),
    ("workers: a task goes to who has left", "runtime/host/remote/remote_io.c",
     "        if (!lent->is_handed && !lent->poll) {", "        if (false) {", [UNIT("remote")]),
    ("workers: an older start is listened to", "runtime/host/remote/remote_io.c",
     "lent->fence.start == report->fence.start && ", "", [UNIT("remote")]),
    ("workers: another epoch is listened to", "runtime/host/remote/remote_io.c",
     "lent->fence.epoch == report->fence.epoch &&", "", [UNIT("remote")]),
    ("workers: said twice", "runtime/host/remote/remote_io.c",
     "lent->is_handed && !lent->is_ended && ", "lent->is_handed && ", [UNIT("remote")]),
    ("workers: silence is never a crash", "runtime/host/remote/remote.c",
     "c->silences >= REMOTE_SILENCES_FREE ? OUTCOME_CRASHED", "false ? OUTCOME_CRASHED", [UNIT("remote")]),
    ("workers: no limit at once", "runtime/host/remote/remote.c",
     "concurrency > remote->lent ? concurrency - remote->lent : 0", "concurrency", [UNIT("remote")]),
    ("workers: a cancelled task gets more time", "runtime/host/remote/remote_io.c",
     "if (lent->is_cancelled || !give_ms ||", "if (!give_ms ||", [UNIT("remote")]),

    # --- who gets the next seat
    ("dispatch: two suspects at once", "runtime/host/handler/dispatch.c",
     "                if (window_marks(w, pool))\n                        return;\n", "", [UNIT("dispatch"), SIM]),
    ("dispatch: a paused pool starts what came back", "runtime/host/handler/dispatch.c",
     "p->is_round = p->is_paused || state == DISPATCH_GONE;", "p->is_round = state == DISPATCH_GONE;", [UNIT("dispatch")]),
    ("dispatch: urgent shards have all the room", "runtime/host/handler/dispatch.c",
     "return room / SHARDS_AT_LEAST;", "return room;", [UNIT("dispatch")]),
    ("dispatch: urgent shards have every place where there is hardly room", "runtime/host/handler/dispatch.c",
     "return p->was_urgent ? 0 : 1;", "return 1;", [UNIT("dispatch")]),
    ("dispatch: always the first shard", "runtime/host/handler/dispatch.c",
     "p->next_shard = p->shard + 1;", ";", [UNIT("dispatch")]),
    ("dispatch: a name that was given to another", "runtime/host/handler/dispatch.c",
     "!routes_serves(&d->routes, pool, c->handler)", "false", [UNIT("dispatch")]),

    # --- the leader
    ("assigner: decides before it knows everybody", "runtime/host/membership/assigner.c",
     "c->is_leading && c->has_read && c->is_known && !c->is_writing", "c->is_leading && c->has_read && !c->is_writing",
     [UNIT("assigner")]),
    ("assigner: decides without leading", "runtime/host/membership/assigner.c",
     "c->is_leading && c->has_read && c->is_known", "c->has_read && c->is_known", [UNIT("assigner")]),
    ("assign: a moved shard keeps its epoch", "runtime/host/membership/assign.c",
     "slot->epoch = w->generation;", ";", [UNIT("assign"), UNIT("assigner")]),
    ("assign: a stale report raises nothing", "runtime/host/membership/assign.c",
     "w->generation = stale->epoch + 1;", ";", [UNIT("assign"), UNIT("assigner")]),

    # --- the guard
    ("guard: releases before the runners are gone", "runtime/guard/guard.c",
     "        if (!await_runners(g)) {", "        if (false) {", [CONTRACT("guard")]),
    ("guard: kills nobody", "runtime/guard/guard.c",
     "        kill_runners(g);\n", "", [CONTRACT("guard")]),

    # --- rollouts and recalls
    ("rollout: an idle probation proves it", "runtime/host/handler/rollout.c",
     "has_served ? NEWS_GOOD : NEWS_UNPROVEN", "true ? NEWS_GOOD : NEWS_UNPROVEN", [UNIT("rollout")]),
    ("recall: it goes to the next runner", "runtime/host/pool/pool.c",
     "pool->is_retreating || task->is_recalled", "pool->is_retreating", [UNIT("pool_retreat")]),

    # --- the predecessor
    ("predecessor: its runners may live", "runtime/host/state_locks.c",
     "        l->is_alone = !l->why_not;", "        l->is_alone = true;", [UNIT("last_run")]),
    ("predecessor: of any boot", "runtime/host/last_run.c",
     "        if (!*now->boot_id || strcmp(last->boot_id, now->boot_id) != 0)", "        if (false)", [UNIT("last_run")]),
    ("predecessor: of a copied folder", "runtime/host/last_run.c",
     "        if (last->alive_id[0] != now->alive_id[0] || last->alive_id[1] != now->alive_id[1])",
     "        if (false)", [UNIT("last_run")]),
    ("predecessor: of any store", "runtime/host/last_run.c",
     "        if (strcmp(last->store, now->store) != 0)", "        if (false)", [UNIT("last_run")]),
    ("predecessor: anybody may have written it", "runtime/host/last_run_io.c",
     "|| (st.st_mode & 022))", ")", [UNIT("last_run")]),
    ("locks: two hosts of one name", "runtime/host/state_locks.c",
     "        if (r == -EAGAIN)\n", "        if (false)\n", [UNIT("last_run")]),
]
