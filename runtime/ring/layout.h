/* layout.h: the memory that a host and one of its runners share.
 *
 * One memfd per runner, sealed against resizing.  The host writes tasks into *entries*, and the numbers of the entries
 * into the submit cells; seats take cells in order.  A seat writes its *answer* to the answer slot of the entry, and
 * the entry's number into the answer cells.  A task or answer that does not fit its slot goes to a *spill*: there are
 * few, they are large, and they take memory only while they are used.
 *
 *         header | submit cells | answer cells | entries | answers | seats | task spills | answer spills
 *
 * A *ticket* numbers the tasks submitted to one runner, from 1.  An entry's state word holds ticket, seat and state. It
 * alone decides whether host or seat has the task:
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
#define RING_LINE      64 /* a cache line: words written by different sides lie in different ones */
#define RING_SLOT      512
#define RING_SEATS_MAX 256
#define RING_SPILLS    32
#define RING_NO_SPILL  UINT32_MAX

/* The parameters of the layout; both sides compute the same offsets from them. */
struct ring_shape {
        uint32_t seats;
        uint32_t entries;          /* a power of two, at most 65536 */
        uint64_t task_bytes_max;   /* largest packed task (pack.h) */
        uint64_t answer_bytes_max; /* largest packed answer */
};

struct ring_offsets {
        size_t submit_cells, answer_cells, entries, answers, seats, task_spills, answer_spills, total;
        size_t task_spill_stride, answer_spill_stride;
};

/* 0, or -EINVAL if the shape is out of bounds. */
int ring_offsets(const struct ring_shape *shape, struct ring_offsets *ret);

/* Why a runner's thread is about to end the process.  `kind` is stored with release order, before the text. */
enum ring_fault_kind { FAULT_NONE, FAULT_SIGNAL, FAULT_EXIT };

#define RING_FAULT_TEXT  2048
#define RING_FAULT_LINES 40 /* lines of a backtrace that may have a place */

struct ring_fault {
        _Atomic uint32_t kind;
        int32_t signal;
        int32_t code;
        uint32_t text_size;
        uint64_t address;
        char text[RING_FAULT_TEXT]; /* what is known about the cause, then the backtrace, one frame per line */
        uint32_t cause_size;        /* bytes of the text before the backtrace */
        /* For each line of the backtrace that is a frame in the plugin's own file: its link-time address there; else
         * 0. */
        uint64_t places[RING_FAULT_LINES];
};

struct ring_header {
        uint32_t magic;
        uint32_t version;
        struct ring_shape shape; /* written once, before the runner starts */

        /* Host → runner.  Cells [next, tail) wait.  The host stores tail with release order after writing the cells;
         * seats advance next by compare-and-swap. */
        alignas(RING_LINE) _Atomic uint64_t submit_tail;
        alignas(RING_LINE) _Atomic uint64_t submit_next;
        alignas(RING_LINE) _Atomic uint32_t seat_bell; /* futex that the host wakes if a seat sleeps */
        _Atomic uint32_t seats_asleep;
        _Atomic uint32_t seat_is_looking;  /* one seat polls: it takes the next task without being woken */
        _Atomic uint32_t task_is_expected; /* the host has woken a seat ahead of a task: the seat polls for it */
        _Atomic uint32_t is_retiring;      /* seats end once no task is queued */

        /* Runner → host.  An answer cell holds its own number, so that the host recognises a cell that is reserved but
         * not yet written. */
        alignas(RING_LINE) _Atomic uint64_t answer_tail;
        alignas(RING_LINE) _Atomic uint32_t host_is_asleep; /* if set, an answer must write the host's eventfd */
        _Atomic uint32_t attention; /* grows with each checkpoint, service call and skipped cell */

        /* For a thread that does not belong to a seat, because the plugin started it: the first such thread that ends
         * the process. */
        alignas(RING_LINE) struct ring_fault thread_fault;

        /* One flag per answer spill.  A seat sets it before filling the spill; the host clears it after reading. */
        alignas(RING_LINE) _Atomic uint32_t answer_spill_used[RING_SPILLS];
};

/* A submit cell is: entry number | low 16 bits of the ticket << 16 | number of tasks in the batch from this cell on <<
 * 32 (1 for a single task).  The ticket tells a cell whose task was taken back from the entry's next task: there are
 * fewer cells than such tickets.  An answer cell is: entry number | (cell number + 1) << 16. */

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

/* Bytes that one side may change while the other copies them are kept as atomic words, so that this is no data race.
 * A number beside them, read before and after the copy, reveals a torn copy. */
#define RING_WORDS(bytes) (((bytes) + 7) / 8)
void ring_words_put(_Atomic uint64_t *words, const void *from, size_t size);
void ring_words_get(void *to, const _Atomic uint64_t *words, size_t size);

/* A call of a service that only the host can provide.  The seat fills it in, wakes the host and sleeps on `word`, which
 * is: number of the call << 2 | state.  The number keeps a late answer from being taken as the answer to the seat's
 * next call. */
enum ring_call_state { CALL_IDLE, CALL_ASKED, CALL_ANSWERED };
#define RING_CALL_STATE(word) ((enum ring_call_state)((word)&3))
enum ring_service { SERVICE_NEXT_ID, SERVICE_TRYLOCK, SERVICE_UNLOCK, SERVICE_ROOM_APPEND, RING_SERVICES };

#define RING_CALL_NAME_MAX 255u /* bytes of the name in a call: of a lock, or of a room */

/* The second number of the answer to SERVICE_NEXT_ID: how many ids, and the distance between two. */
#define RING_IDS(count, step)  ((uint64_t)(step) << 16 | (uint64_t)(count))
#define RING_IDS_COUNT(number) ((uint32_t)((number)&0xffff))
#define RING_IDS_STEP(number)  ((uint64_t)(number) >> 16)
#define RING_IDS_MAX           64u /* ids that a seat asks for at once */

struct ring_call {
        _Atomic uint32_t word; /* futex */
        _Atomic uint32_t service;
        _Atomic uint64_t ticket;       /* the task that the seat runs; 0: none */
        _Atomic uint64_t asked_number; /* ttl_ms or token */
        _Atomic uint32_t size;         /* of bytes */
        _Atomic uint64_t name[RING_WORDS(RING_CALL_NAME_MAX + 1)];
        int32_t status;             /* answer: 0 or -errno */
        uint64_t answer_numbers[2]; /* depends on the service; an id or a token comes first */
        _Atomic uint64_t bytes[RING_WORDS(QV_ROOM_ENTRY_MAX)];
};

enum ring_phase { SEAT_STARTING, SEAT_IDLE, SEAT_BUSY, SEAT_CLOSED };

struct ring_checkpoint {
        _Atomic uint64_t ticket;
        _Atomic uint32_t size;
        _Atomic uint64_t bytes[RING_WORDS(QV_CHECKPOINT_MAX)];
};

struct ring_seat {
        alignas(RING_LINE) _Atomic uint64_t ticket; /* the task that the seat holds, the first of a batch; 0: none */
        _Atomic uint64_t started_ns;                /* CLOCK_BOOTTIME */
        _Atomic uint64_t progressed_ns;             /* time of the last progress(); 0: none */
        _Atomic uint64_t progress_done, progress_total;
        _Atomic uint32_t phase;

        alignas(RING_LINE) _Atomic uint32_t stop; /* RING_STOP(ticket): that task has to end.  Set by the host,
                                                   * cleared by the seat before it shows its next task */

        /* The latest checkpoint is checkpoints[version % 2]; version 0 means none.  The next one is written into the
         * other element, so that a process that dies while writing leaves the latest one intact. */
        alignas(RING_LINE) _Atomic uint32_t checkpoint_version;
        struct ring_checkpoint checkpoints[2];

        struct ring_call call;
        struct ring_fault fault;
};

/* A stop value names the task, so that a late one does not stop the seat's next task. */
#define RING_STOP(ticket) ((uint32_t)(ticket) | UINT32_C(0x80000000))

/* Pointers to the parts of a mapping of ring_offsets.total bytes at `base`. */
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
