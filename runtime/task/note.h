/* note.h: what a store keeps about a task besides its envelope.
 *
 *         qn1
 *         attempts:2
 *         crashes:1
 *         laters:3
 *         started:42
 *         holder:host-b
 *         until:1763256060000
 *         merged:12
 *         mergedat:1763256000100
 *         debounced:1
 *         event:1763256000123 attempt connection refused
 *         event:1763256001456 crash SIGSEGV at 0x10 in write_row
 *
 *         checkpoint, any bytes, to the end
 *
 * Most tasks never have a note: it is written when a task fails, is marked as started or saves a checkpoint. */
#ifndef QUIVER_TASK_NOTE_H
#define QUIVER_TASK_NOTE_H

#include "task/envelope.h"

#define NOTE_EVENTS_MAX     8u    /* only the latest are kept */
#define NOTE_TEXT_MAX       2048u /* bytes of one event's text, which may be a backtrace; longer is cut */
#define NOTE_CHECKPOINT_MAX 4096u
#define NOTE_HOLDER_MAX     128u
#define NOTE_COUNT_MAX      (UINT32_MAX - 1) /* of attempts, crashes, …: adding one does not overflow */
#define NOTE_VERSION_MAX    32u              /* bytes of a plugin's version in a place */
#define NOTE_NEWLINE        '\x1f' /* between the lines of an event's text, which is itself one line of a note */

/* What an event cost the task.  Each kind is counted apart; only attempts and crashes use up the task's budget. */
enum task_cost {
        COST_NONE,         /* the task waited: its handler is not served, a database is down */
        COST_ATTEMPT,      /* the handler returned a failure */
        COST_CRASH,        /* the handler died or hung */
        COST_INTERRUPTION, /* Quiver ended it: shutdown, reload, a crash of a neighbour, a lost lease */
        COST_LATER,        /* the handler answered LATER: counted, because it must not go on for ever */
        COSTS
};

/* Zero-initialised is the note of a task to which nothing has happened.  Spans are borrowed. */
struct task_note {
        uint32_t attempts;
        uint32_t crashes;
        uint32_t interruptions;
        uint32_t laters;        /* how often the handler answered LATER */
        uint64_t started_epoch; /* a start was recorded in this epoch and has not ended; 0: none */
        struct span holder;     /* with started_epoch: who runs it, a host's nonce or a worker's name */
        uint64_t until_ms;      /* with started_epoch: nobody else starts it before this store time; 0: none */
        uint32_t merged;        /* number of tasks merged into it */
        uint64_t merged_ms;     /* when the last one was merged, store time */
        bool is_debounced;      /* it has already waited for others to merge */
        bool is_suspect;        /* the task was running when its runner or host died: it runs alone */
        struct span events;     /* read with note_event_next() */
        struct span checkpoint;
};

struct note_event {
        uint64_t at_ms;   /* store time */
        struct span kind; /* "attempt", "crash", "interruption", "later", "waited", "dead", "requeued", "held",
                             "rescheduled", "moved" */
        struct span text;
        /* Where it ran: "host-a pid=7 generation=1 plugin=9f0c1a2b version=1.0", "worker alice (via host-a)", or
         * "host-b (borrowed seat)"; empty: unknown. */
        struct span where;
};

/* The place of a start, appended to the error in its event.  A newline separates it from the error's first line. */
#define NOTE_WHERE_FORMAT  "\n@%s pid=%d generation=%" PRIu32 " plugin=%08" PRIx32 "%s%s"
#define NOTE_WHERE_VERSION " version=" /* the last two arguments: this and the plugin's version, or both "" */
/* The place of a start at a worker, which got the task from that host. */
#define NOTE_WHERE_WORKER_FORMAT "\n@worker %s (via %s)"
/* Appended to either after another host's name, if the task ran on a borrowed seat of that host. */
#define NOTE_WHERE_SEAT " (borrowed seat)"
/* Removes the place from the text and returns it. */
struct span note_take_where(struct span *text);

/* Empty bytes are an empty note.  0 or -EBADMSG. */
int note_parse(const void *data, size_t size, struct task_note *ret_note);
void note_put(struct buffer *to, const struct task_note *note);
/* Whether the text may be the holder of a start: 1 to NOTE_HOLDER_MAX printable ASCII characters, no space. */
bool note_holder_is_good(struct span holder);
/* `count` tasks were merged into this one. */
void note_merge(struct task_note *note, uint64_t at_ms, uint32_t count);
/* Whether a start was counted, is under way or left a checkpoint: then the payload must not change any more.  A start
 * that cost nothing (the handler was unavailable or answered LATER) does not count. */
bool note_has_started(const struct task_note *note);
/* The start is over: removes its record. */
void note_clear_start(struct task_note *note);
bool note_is_empty(const struct task_note *note);

/* The text up to its first NOTE_NEWLINE or newline. */
struct span note_first_line(struct span text);
/* Appends the text with newlines for each NOTE_NEWLINE. */
void note_put_lines(struct buffer *to, struct span text);

/* Adds an event, and drops the oldest if there are too many.  note->events then points into `scratch`.  Newlines in
 * `text` become NOTE_NEWLINE, other control characters spaces. */
void note_add_event(struct task_note *note, struct buffer *scratch, uint64_t at_ms, const char *kind, struct span text);

/* Counts the cost and adds its event.  A LATER right after another LATER replaces that event, so that a thousand of
 * them do not push everything else out of the history. */
void note_charge(struct task_note *note, struct buffer *scratch, uint64_t at_ms, enum task_cost cost, struct span text);

/* Reads the first (oldest) event of *events and moves *events past it; false at the end. */
bool note_event_next(struct span *events, struct note_event *ret_event);

#endif
