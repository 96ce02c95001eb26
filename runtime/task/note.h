/* note.h: what a store remembers of a task besides its envelope.
 *
 *         qn1
 *         attempts:2
 *         crashes:1
 *         started:42
 *         event:1763256000123 attempt connection refused
 *         event:1763256001456 crash SIGSEGV at 0x10 in write_row
 *
 *         checkpoint, any bytes, to the end
 *
 * Most tasks never have one: it is written when a task fails, is marked or saves a checkpoint. */
#ifndef QUIVER_TASK_NOTE_H
#define QUIVER_TASK_NOTE_H

#include "task/envelope.h"

#define NOTE_EVENTS_MAX     8u   /* the latest; older ones are forgotten */
#define NOTE_TEXT_MAX       512u /* bytes of one event's text; longer is cut */
#define NOTE_CHECKPOINT_MAX 4096u
#define NOTE_COUNT_MAX      (UINT32_MAX - 1) /* of attempts, crashes, interruptions: one more can be counted */

/* What an event cost the task.  Each is counted apart; only attempts and crashes are charged to it. */
enum task_cost {
        COST_NONE,        /* nobody's fault: handler not there, database down */
        COST_ATTEMPT,     /* the handler said no */
        COST_CRASH,       /* the handler died or hung */
        COST_INTERRUPTION /* our doing: shutdown, reload, a neighbour, a lost lease */
};

/* Zero is a task to which nothing has happened.  Spans are borrowed. */
struct task_note {
        uint32_t attempts;
        uint32_t crashes;
        uint32_t interruptions;
        uint64_t started_epoch; /* a suspect's durable mark: it was started in this epoch and has not ended; 0: none */
        bool is_suspect;        /* it was running when something died: run it alone */
        struct span events;     /* note_event_next() reads them */
        struct span checkpoint;
};

struct note_event {
        uint64_t at_ms;   /* store time */
        struct span kind; /* "attempt", "crash", "interruption", "waited", "dead", "requeued", "held" */
        struct span text;
};

/* Empty bytes are an empty note.  0 or -EBADMSG. */
int note_parse(const void *data, size_t size, struct task_note *ret_note);
void note_put(struct buffer *to, const struct task_note *note);
bool note_is_empty(const struct task_note *note);

/* Adds an event in `scratch`, to which note->events then points; forgets the oldest if there are too many.  Control
 * characters in `text` become spaces. */
void note_add_event(struct task_note *note, struct buffer *scratch, uint64_t at_ms, const char *kind, struct span text);

/* Counts the cost and adds the event that goes with it. */
void note_charge(struct task_note *note, struct buffer *scratch, uint64_t at_ms, enum task_cost cost, struct span text);

/* The first event of *events, oldest first, moving *events past it; false at the end. */
bool note_event_next(struct span *events, struct note_event *ret_event);

#endif
