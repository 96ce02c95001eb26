"""A task's bytes, and what all else stands on: runtime/task, runtime/base, runtime/config, runtime/schedule."""
from noticed_by import CONTRACT, UNIT

MUTANTS = [
    # --- notes
    ("note: newlines are lost", "runtime/task/note.c",
     'events.data[i] = NOTE_NEWLINE;', "events.data[i] = ' ';", [UNIT("envelope")]),
    ("note: a checkpoint of any length", "runtime/task/note.c",
     "                if (text.size > NOTE_CHECKPOINT_MAX)\n                        return -EBADMSG;\n", "", [UNIT("envelope")]),

    # --- times
    ("log: a key that looks like a number is one", "runtime/base/log.c", " && !log_is_number(value, strlen(value))", "",
     [UNIT("base")]),
    ("log: a value over lines has no length in the journal", "runtime/base/log/format.c", "if (!memchr(value, '\\n', size))",
     "if (true)", [UNIT("log_format")]),
    ("log: bytes that are no UTF-8 in JSON", "runtime/base/log/format.c", "else if (!n)", "else if (false)", [UNIT("log_format")]),
    ("log: a quoted number is a number", "runtime/base/log/format.c", "!pair.is_quoted && ", "", [UNIT("log_format")]),
    ("log: waits for the journal", "runtime/base/log/journal.c", "r != -EAGAIN && ", "", [UNIT("log_format")]),
    ("time: the first of two", "runtime/base/timestamp.c", "if (found > 1)", "if (found > 2)", [UNIT("timestamp")]),
    ("time: any day of a month", "runtime/base/timestamp.c",
     "return (month != 2 || t->tm.tm_mday < 29 || is_leap) &&", "return", [UNIT("timestamp")]),

    # --- merging
    ("envelope: merge without a key", "runtime/task/envelope.c", "if (e->is_merge && !e->key.size)", "if (false)", [UNIT("envelope")]),
    ("envelope: debounce without merge", "runtime/task/envelope.c", "if (e->debounce_ms && !e->is_merge)", "if (false)", [UNIT("envelope")]),
    ("envelope: packed without merge", "runtime/task/packed.c", "(e->is_merge ? MORE_MERGE : 0)", "0", [UNIT("packed")]),
    ("note: a start that was counted is none", "runtime/task/note.c",
     "return note->attempts || note->crashes ||", "return note->crashes ||", [UNIT("envelope")]),

    # --- who else could have written what a host runs
    ("trust: any owner", "runtime/base/file/file_trust.c", "st->st_uid != 0 && st->st_uid != geteuid()) {", "false) {",
     [UNIT("file_trust")]),
    ("trust: writable by everybody", "runtime/base/file/file_trust.c", "has_mode && (st->st_mode & S_IWOTH)) {", "false) {",
     [UNIT("file_trust")]),
    ("trust: writable by any group", "runtime/base/file/file_trust.c", "!is_our_group(st->st_gid)", "false", [UNIT("file_trust")]),
    ("trust: folders on the way do not count", "runtime/base/file/file_trust.c",
     "                judge(w, &st, ON_THE_WAY);\n                (void)close(w->dir);", "                (void)close(w->dir);",
     [UNIT("file_trust")]),
    ("trust: links do not count", "runtime/base/file/file_trust.c", "                judge(w, &st, A_LINK);\n", "", [UNIT("file_trust")]),

    # --- headers of bytes
    ("header64: any text", "runtime/task/header.c", "if (!base64_is_exact(value, &size))\n                return error_set",
     "if (false)\n                return error_set", [UNIT("envelope")]),
    ("header64: of any length", "runtime/task/header.c", "if (size > TASK_HEADER_BYTES_MAX)", "if (false)", [UNIT("envelope")]),
    ("header64: more than a build keeps that does not know them", "runtime/task/envelope.c",
     "if (p->headers64 > TASK_OTHERS_MAX)", "if (false)", [UNIT("envelope")]),
    ("base64: other bits for the same bytes", "runtime/base/base64.c",
     "if (spare && value_of(text.data[digits_count - 1]) & spare)", "if (false)", [UNIT("envelope")]),
    ("base64: padding inside", "runtime/base/base64.c", "                if (value_of(text.data[i]) < 0)\n                        return false;",
     "                if (text.data[i] != '=' && value_of(text.data[i]) < 0)\n                        return false;", [UNIT("envelope")]),

    # --- LATER
    ("later: not counted", "runtime/task/note.c",
     "                count_up(&note->laters);\n", "", [UNIT("envelope"), CONTRACT("store_sqlite")]),
    ("later: not kept", "runtime/task/note.c",
     "        if (note->laters)\n", "        if (false)\n", [UNIT("envelope")]),
    ("later: fills the history", "runtime/task/note.c",
     "                drop_last_event(note, kinds[cost]);\n", "", [UNIT("envelope")]),
    ("later: replaces any event", "runtime/task/note.c",
     "if (is_any && span_is(event.kind, span_of_text(kind)))", "if (is_any)", [UNIT("envelope")]),

    # --- what a newer Quiver wrote
    ("envelope: any number of unknown names", "runtime/task/envelope.c", "if (++p->others > TASK_OTHERS_MAX)", "if (false)",
     [UNIT("envelope")]),
    ("envelope: unknown names of any size", "runtime/task/envelope.c", "if (size > TASK_HEADER_LINES_MAX)", "if (false)", [UNIT("envelope")]),
    ("envelope: an unknown name twice", "runtime/task/envelope_others.c", "if (span_is(other, name))", "if (false)", [UNIT("envelope")]),
    ("envelope: packed without unknown names", "runtime/task/packed.c", "(e->others.size ? MORE_OTHERS : 0)", "0",
     [UNIT("packed"), CONTRACT("store_sqlite")]),

    # --- schedules
    ("schedules: what was missed passes", "runtime/schedule/schedule.c", "if (fires) {",
     "if (fires && schedule->catchup != CATCHUP_ALL) {", [UNIT("schedule")]),
    ("cron: what comes once in decades never comes", "runtime/schedule/cron.c", "#define DAYS_AHEAD (41 * 366)", "#define DAYS_AHEAD (9 * 366)",
     [UNIT("schedule")]),
    ("schedules: any late time fires", "runtime/schedule/schedule.c", "if (is_missed) {", "if (false) {", [UNIT("schedule")]),

    # --- who overrides whom in a configuration
    ("config: an included file overrides its includer", "runtime/config/parse.c", "return other != NULL;", "return true;",
     [UNIT("config_text")]),
    ("config: a mistake in a handler stops a producer", "runtime/config/problems.c",
     "(p->is_in_handlers && p->reader == READER_COMMAND)", "false", [UNIT("config_text")]),

    # --- locks
    ("predecessor: runners hold no lock", "runtime/base/file/file_lock.c",
     "        int r = file_lock_take(shared, FILE_LOCK_SHARED, 0);", "        int r = 0;", [UNIT("last_run")]),
]
