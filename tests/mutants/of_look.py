"""Which questions are asked of a store, and what is changed there on the way: runtime/look."""
from noticed_by import CONTRACT

APPLY = "runtime/look/schedules_apply.c"
RESULTS = "runtime/look/results_act.c"

MUTANTS = [
    # --- schedules of configurations
    ("file schedules: an older configuration is taken", APPLY, "a->is_older = a->version < a->newest.version;", "a->is_older = false;",
     [CONTRACT("store_sqlite")]),
    ("file schedules: what a command set is replaced", APPLY, "                if (is_conflict)\n                        continue;\n", "",
     [CONTRACT("store_sqlite")]),
    ("file schedules: what somebody newer put is deleted", APPLY, "record->stored.version <= a->version && !find_file", "!find_file",
     [CONTRACT("store_sqlite")]),
    ("file schedules: what somebody older left stays", APPLY, "a->is_older ? record->stored.version < a->newest.version", "a->is_older ? false",
     [CONTRACT("store_sqlite")]),
    ("file schedules: what was put meanwhile is not seen", APPLY, "                a->has_put = true;\n                a->step = APPLY_LIST;\n",
     "                a->step = APPLY_UNMARK;\n", [CONTRACT("store_sqlite")]),
    ("file schedules: another key leaves the old record", APPLY, "if (elsewhere && !elsewhere->is_gone) {", "if (false) {",
     [CONTRACT("store_sqlite")]),
    ("file schedules: one that a command deleted never comes", APPLY, "if (put == PUT_LOOKED && list->schedules_count &&", "if (false &&",
     [CONTRACT("store_sqlite")]),
    ("file schedules: a moved one is not paused any more", APPLY, "old->state == SCHEDULE_PAUSED ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE", "SCHEDULE_ACTIVE",
     [CONTRACT("store_sqlite")]),

    # --- results with receipts
    ("receipts: the number of another shard's result", RESULTS, "read_number(at, STORE_RESULT_NUMBER_MAX, &number)",
     "read_number(at, TASK_NUMBER_MAX, &number)", [CONTRACT("store_sqlite")]),
    ("receipts: a shard that there is not", RESULTS, "read_number(text, shards - 1, &shard)", "read_number(text, UINT32_MAX, &shard)",
     [CONTRACT("store_sqlite")]),
    ("receipts: an answer of any length", RESULTS, "take->bytes >= take->bytes_max ||", "", [CONTRACT("store_sqlite")]),
    ("receipts: who holds the result is not looked at", RESULTS, "a->shard == b->shard && !memcmp(a->consumer, b->consumer, STORE_NONCE_SIZE)",
     "a->shard == b->shard", [CONTRACT("store_sqlite")]),
    ("receipts: any number is looked for", "runtime/store/admin.c", "commit->numbers[i] > STORE_RESULT_NUMBER_MAX", "false",
     [CONTRACT("store_sqlite")]),
]
