/* layout.h: the memory that a host and one of its runners share.
 *
 * One memfd per runner, sealed against resizing.  The host writes tasks into *entries*, and the numbers of entries into
 * the submit cells; seats take cells in order.  A seat writes its *answer* beside the entry, and the entry's number
 * into the answer cells.  What does not fit beside an entry goes to a *spill*: there are few, large, and made of memory
 * only while they are used.
 *
 *         header | submit cells | answer cells | entries | answers | seats | task spills | answer spills
 *
 * A *ticket* numbers the tasks handed to one runner, from 1.  An entry's state word holds ticket, seat and state, and
 * is the one place where "who has this task" is decided:
 *
 *         host:  FREE → QUEUED     by a store
 *         seat:  QUEUED → STARTED  by compare-and-swap, after the seat was written
 *         host:  QUEUED → TAKEN    by compare-and-swap: it never started, and never will
 *
 * The host trusts nothing here: it keeps its own record of every entry (host_side.h) and checks each number that it
 * reads.  The runner trusts the host.  There is no lock in this memory. */
#ifndef QUIVER_RING_LAYOUT_H
#define QUIVER_RING_LAYOUT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <quiver/plugin.h>

#define RING_MAGIC     UINT32_C(0x51524e47)
#define RING_VERSION   UINT32_C(1)
#define RING_LINE      64 /* what two cores should not share */
#define RING_SLOT      512
#define RING_SEATS_MAX 256
#define RING_SPILLS    32
#define RING_NO_SPILL  UINT32_MAX

/* All that the layout depends on; both sides compute the same offsets from it. */
struct ring_shape {
        uint32_t seats;
        uint32_t entries;          /* a power of two, at most 65536 */
        uint64_t task_bytes_max;   /* of one packed task (pack.h) */
        uint64_t answer_bytes_max; /* of one packed answer */
};

struct ring_offsets {
        size_t submit_cells, answer_cells, entries, answers, seats, task_spills, answer_spills, total;
        size_t task_spill_stride, answer_spill_stride;
};

/* 0, or -EINVAL if the shape is out of bounds. */
int ring_offsets(const struct ring_shape *shape, struct ring_offsets *ret);

struct ring_header {
        uint32_t magic;
        uint32_t version;
        struct ring_shape shape; /* written once, before the runner starts */

        /* Host → runner.  Cells [next, tail) wait; tail is released after the cells, next is won by seats. */
        alignas(RING_LINE) _Atomic uint64_t submit_tail;
        alignas(RING_LINE) _Atomic uint64_t submit_next;
        alignas(RING_LINE) _Atomic uint32_t seat_bell; /* futex: rung by the host when somebody sleeps */
        _Atomic uint32_t seats_asleep;
        _Atomic uint32_t is_retiring; /* take nothing more; close and leave */

        /* Runner → host.  A cell holds its own number, so a cell reserved and not yet written is not mistaken. */
        alignas(RING_LINE) _Atomic uint64_t answer_tail;
        alignas(RING_LINE) _Atomic uint32_t host_is_asleep; /* then write to the host's eventfd */
        _Atomic uint32_t attention; /* grows with each checkpoint, service call and passed-over cell */

        /* One flag per answer spill: set by the seat that fills it, cleared by the host once it was read. */
        alignas(RING_LINE) _Atomic uint32_t answer_spill_used[RING_SPILLS];
};

/* A submit cell: entry number | tasks of this batch << 32 (1 for a plain task; the rest of a batch follows).
 * An answer cell: entry number | (cell number + 1) << 16. */

enum ring_state { ENTRY_FREE, ENTRY_QUEUED, ENTRY_STARTED, ENTRY_TAKEN };

/* state word = ticket << 16 | seat << 4 | state */
#define RING_WORD(ticket, seat, state) ((uint64_t)(ticket) << 16 | (uint64_t)(seat) << 4 | (uint64_t)(state))
#define RING_WORD_TICKET(word)         ((uint64_t)(word) >> 16)
#define RING_WORD_SEAT(word)           ((uint32_t)((word) >> 4) & 0xfff)
#define RING_WORD_STATE(word)          ((enum ring_state)((word)&0xf))

struct ring_entry {
        _Atomic uint64_t word;
        uint32_t spill; /* RING_NO_SPILL: the task is in bytes[] */
        uint32_t size;  /* of the packed task */
        uint8_t bytes[RING_SLOT - 16];
};

struct ring_answer {
        uint64_t ticket;
        uint32_t spill;
        uint32_t size; /* of the packed answer */
        uint8_t bytes[RING_SLOT - 16];
};

/* Why a runner's thread is about to end the process.  `kind` is released last. */
enum ring_fault_kind { FAULT_NONE, FAULT_SIGNAL, FAULT_EXIT };

#define RING_FAULT_TEXT 2048

struct ring_fault {
        _Atomic uint32_t kind;
        int32_t signal;
        int32_t code;
        uint32_t text_size;
        uint64_t address;
        char text[RING_FAULT_TEXT]; /* backtrace, one frame a line; may be empty */
};

/* Bytes that one side may change while the other copies them, as words: a torn copy is then no data race, and a number
 * beside them, looked at before and after, tells that it is torn. */
#define RING_WORDS(bytes) (((bytes) + 7) / 8)
void ring_words_put(_Atomic uint64_t *words, const void *from, size_t size);
void ring_words_get(void *to, const _Atomic uint64_t *words, size_t size);

/* A service that only the host can do: the seat fills it in, rings the host, and sleeps on `word`, which is the call's
 * number << 2 | state, so that an answer that comes after the seat gave up does not answer its next question. */
enum ring_call_state { CALL_IDLE, CALL_ASKED, CALL_ANSWERED };
#define RING_CALL_STATE(word) ((enum ring_call_state)((word)&3))
enum ring_service { SERVICE_NEXT_ID, SERVICE_TRYLOCK, SERVICE_UNLOCK };

struct ring_call {
        _Atomic uint32_t word; /* futex */
        _Atomic uint32_t service;
        _Atomic uint64_t asked_number; /* ttl_ms or token */
        _Atomic uint64_t name[RING_WORDS(QV_LOCK_NAME_MAX + 1)];
        int32_t status;         /* answer: 0 or -errno */
        uint64_t answer_number; /* id or token */
};

enum ring_phase { SEAT_STARTING, SEAT_IDLE, SEAT_BUSY, SEAT_CLOSED };

struct ring_checkpoint {
        _Atomic uint64_t ticket;
        _Atomic uint32_t size;
        _Atomic uint64_t bytes[RING_WORDS(QV_CHECKPOINT_MAX)];
};

struct ring_seat {
        alignas(RING_LINE) _Atomic uint64_t ticket; /* first ticket of what it holds; 0: nothing */
        _Atomic uint64_t started_ns;                /* CLOCK_BOOTTIME */
        _Atomic uint64_t progressed_ns;             /* last progress(); 0: none */
        _Atomic uint64_t progress_done, progress_total;
        _Atomic uint32_t phase;

        alignas(RING_LINE) _Atomic uint32_t stop; /* RING_STOP(ticket): that task has to end.  The host's word;
                                                   * a seat clears it before it shows its next task */

        /* The latest checkpoint is checkpoints[version % 2]; version 0: none yet.  The next is written into the other
         * one, so that a process that dies meanwhile leaves the latest whole. */
        alignas(RING_LINE) _Atomic uint32_t checkpoint_version;
        struct ring_checkpoint checkpoints[2];

        struct ring_call call;
        struct ring_fault fault;
};

/* A stop value names the task, so that one that comes late does not stop the next. */
#define RING_STOP(ticket) ((uint32_t)(ticket) | UINT32_C(0x80000000))

/* The parts of a mapping of ring_offsets.total bytes at `base`. */
struct ring_map {
        uint8_t *base;
        struct ring_shape shape;
        struct ring_offsets offsets;
        struct ring_header *header;
        _Atomic uint64_t *submit_cells;
        _Atomic uint64_t *answer_cells;
        struct ring_entry *entries;
        struct ring_answer *answers;
        struct ring_seat *seats;
};

/* Fills in the pointers; `shape` must have passed ring_offsets(). */
void ring_map_init(struct ring_map *map, void *base, const struct ring_shape *shape);
uint8_t *ring_task_spill(const struct ring_map *map, uint32_t index);
uint8_t *ring_answer_spill(const struct ring_map *map, uint32_t index);

#endif
