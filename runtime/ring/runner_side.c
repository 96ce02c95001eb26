#include "ring/runner_side.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/futex.h"

/* How often a seat polls before it sleeps: a wake-up costs 20 to 40 µs, a poll a few nanoseconds.  One seat of a runner
 * polls at a time, and only after a short task: if all did, 64 seats with tasks of a millisecond would spend more than
 * half of two processors on polling. */
#define LOOKS_BEFORE_SLEEP 2000
/* The same for a seat that was woken ahead of a task: longer than a store on the same machine takes to answer.  It lets
 * others run at each poll, because the store or the host may wait for this processor. */
#define LOOKS_EXPECTED 1000
#define SHORT_NS       UINT64_C(200000)

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
}

int ring_attach(struct ring_runner *r, int ring_fd, int bell_fd)
{
        struct stat st;
        if (fstat(ring_fd, &st) < 0)
                return -errno;
        if (st.st_size < (off_t)sizeof(struct ring_header))
                return -EINVAL;
        size_t size = (size_t)st.st_size;
        void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
        if (base == MAP_FAILED)
                return -errno;
        const struct ring_header *header = base;
        struct ring_shape shape = header->shape;
        struct ring_offsets offsets;
        if (header->magic != RING_MAGIC || header->version != RING_VERSION || ring_offsets(&shape, &offsets) < 0 ||
                offsets.total != size) {
                (void)munmap(base, size);
                return -EINVAL;
        }
        ring_map_init(&r->map, base, &shape);
        r->bell_fd = bell_fd;
        atomic_init(&r->bell_is_lost, false);
        return 0;
}

void ring_detach(struct ring_runner *r)
{
        if (!r->map.base)
                return;
        (void)munmap(r->map.base, r->map.offsets.total);
        r->map.base = NULL;
}

/* Takes the next cells for one seat: at most `max` cells of one batch.  Returns how many, with the numbers of their
 * entries and the low bits of their tickets; 0 if no cell waits. */
static uint32_t win_cells(struct ring_runner *r, struct ring_taken *ret, uint32_t max)
{
        struct ring_header *h = r->map.header;
        uint32_t mask = r->map.shape.entries - 1;
        uint64_t next = atomic_load_explicit(&h->submit_next, memory_order_relaxed);
        for (;;) {
                /* Pairs with the release store of submit_tail in ring_host_submit(): the cells below it are written. */
                if (next >= atomic_load_explicit(&h->submit_tail, memory_order_acquire))
                        return 0;
                uint64_t cell = atomic_load_explicit(&r->map.submit_cells[next & mask], memory_order_relaxed);
                uint32_t count = (uint32_t)(cell >> 32) < max ? (uint32_t)(cell >> 32) : max;
                /* Code in this process has overwritten the cells, and the task that this cell named is unknown.
                 * Ending the process, which the host notices, is better than a task that waits for ever. */
                if (!count)
                        abort();
                /* Read all cells before the compare-and-swap: after it the host may reuse them. */
                for (uint32_t i = 0; i < count; i++) {
                        cell = atomic_load_explicit(&r->map.submit_cells[(next + i) & mask], memory_order_relaxed);
                        ret[i].entry = (uint32_t)(cell & 0xffff) & mask;
                        ret[i].ticket = cell >> 16 & 0xffff;
                }
                if (atomic_compare_exchange_weak_explicit(
                            &h->submit_next, &next, next + count, memory_order_acq_rel, memory_order_relaxed))
                        return count;
        }
}

/* Starts the task of one cell; false if the host has taken it back.  The entry may then already hold a newer task,
 * which must wait for its own cell: in a batch it may have to follow another task. */
static bool start(struct ring_runner *r, uint32_t seat, struct ring_taken cell, bool is_first, struct ring_taken *ret)
{
        uint32_t entry_number = cell.entry;
        struct ring_entry *e = &r->map.entries[entry_number];
        struct ring_seat *s = &r->map.seats[seat];
        uint64_t word = atomic_load_explicit(&e->word, memory_order_acquire);
        if (RING_WORD_STATE(word) != ENTRY_QUEUED)
                return false;
        uint64_t ticket = RING_WORD_TICKET(word);
        if ((ticket & 0xffff) != cell.ticket)
                return false;
        /* The seat is written before the entry: if this process dies in between, the host finds a seat that names a
         * task which was not started, never a started task that no seat names. */
        if (is_first) {
                atomic_store_explicit(&s->started_ns, clock_boot_ns(), memory_order_relaxed);
                atomic_store_explicit(&s->progressed_ns, 0, memory_order_relaxed);
                atomic_store_explicit(&s->progress_done, 0, memory_order_relaxed);
                atomic_store_explicit(&s->progress_total, 0, memory_order_relaxed);
                atomic_store_explicit(&s->phase, SEAT_BUSY, memory_order_relaxed);
                /* Stop values repeat after 2^31 tickets, so an old one must not stay. */
                if (atomic_load_explicit(&s->stop, memory_order_relaxed))
                        atomic_store_explicit(&s->stop, 0, memory_order_relaxed);
                atomic_store_explicit(&s->ticket, ticket, memory_order_release);
        }
        if (!atomic_compare_exchange_strong_explicit(&e->word, &word, RING_WORD(ticket, seat, ENTRY_STARTED),
                    memory_order_acq_rel, memory_order_relaxed))
                return false;
        const uint8_t *bytes = e->spill == RING_NO_SPILL ? e->bytes : ring_task_spill(&r->map, e->spill);
        ret->entry = entry_number;
        ret->ticket = ticket;
        if (ring_unpack_task(bytes, e->size, &ret->task) == 0)
                return true;
        /* Code in this process has overwritten the packed task.  It cannot be handled, but it must be answered. */
        struct ring_reply reply = { .ticket = ticket,
                .outcome = OUTCOME_INTERRUPTED,
                .error = "its bytes were damaged in the runner's memory" };
        (void)ring_answer(r, ret, &reply);
        return false;
}

static bool has_cells(struct ring_header *h)
{
        return atomic_load(&h->submit_next) < atomic_load(&h->submit_tail);
}

void ring_wake_host(struct ring_runner *r)
{
        /* Pairs with ring_host_sleep(): the host sets the flag, then checks for answers; we publish the answer, then
         * read the flag.  One of the two sees the other. */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&r->map.header->host_is_asleep, memory_order_relaxed) &&
                atomic_exchange(&r->map.header->host_is_asleep, 0)) {
                uint64_t one = 1;
                if (write(r->bell_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
                        atomic_store_explicit(&r->bell_is_lost, true, memory_order_relaxed);
        }
}

/* Makes the host look at the seats: something other than an answer has changed. */
static void call_host(struct ring_runner *r)
{
        atomic_fetch_add_explicit(&r->map.header->attention, 1, memory_order_release);
        ring_wake_host(r);
}

/* Sleeps until the host wakes seat_bell; returns at once if a cell was submitted in between. */
static void wait_for_bell(struct ring_header *h)
{
        uint32_t bell = atomic_load(&h->seat_bell);
        atomic_fetch_add(&h->seats_asleep, 1);
        /* Pairs with the fence in ring_host_ring(): we count ourselves as asleep, then check for cells; the host
         * publishes cells, then reads the count.  One of the two sees the other. */
        if (!has_cells(h) && !atomic_load(&h->is_retiring))
                futex_wait(&h->seat_bell, bell, NULL);
        atomic_fetch_sub(&h->seats_asleep, 1);
}

/* How often this seat polls: if the host expects a task, or the last one was short, and no other seat polls; else 0. */
static uint32_t look_begin(struct ring_header *h, const struct ring_seat *s)
{
        bool is_expected = atomic_load_explicit(&h->task_is_expected, memory_order_relaxed) &&
                           atomic_exchange_explicit(&h->task_is_expected, 0, memory_order_relaxed);
        uint64_t started_ns = atomic_load_explicit(&s->started_ns, memory_order_relaxed);
        if (clock_boot_ns() - started_ns >= SHORT_NS && !is_expected)
                return 0;
        if (atomic_load_explicit(&h->seat_is_looking, memory_order_relaxed) || atomic_exchange(&h->seat_is_looking, 1))
                return 0;
        return is_expected ? LOOKS_EXPECTED : LOOKS_BEFORE_SLEEP;
}

/* Pairs with ring_host_ring(): the host publishes tasks, then reads the flag, and wakes one seat less if it is set; we
 * clear the flag, then check for tasks.  So we see the task for which no seat was woken. */
static void look_end(struct ring_header *h)
{
        atomic_store(&h->seat_is_looking, 0);
        if (!has_cells(h) || !atomic_load(&h->seats_asleep))
                return;
        atomic_fetch_add(&h->seat_bell, 1);
        futex_wake(&h->seat_bell, 1);
}

uint32_t ring_take(struct ring_runner *r, uint32_t seat, struct ring_taken *ret, uint32_t max)
{
        struct ring_header *h = r->map.header;
        uint32_t looks = 0, looks_max = 0;
        for (;;) {
                uint32_t cells = win_cells(r, ret, max);
                uint32_t started = 0;
                for (uint32_t i = 0; i < cells; i++)
                        if (start(r, seat, ret[i], !started, &ret[started]))
                                started++;
                if (looks_max && cells) {
                        looks_max = 0;
                        look_end(h);
                }
                if (started)
                        return started;
                ring_seat_idle(r, seat);
                if (cells) {
                        /* All tasks were taken back: no answer will come, and the host may be waiting for the room. */
                        call_host(r);
                        looks = 0;
                        continue;
                }
                /* Tasks submitted before the flag was set must still be done, so the cells are checked after it. */
                if (atomic_load_explicit(&h->is_retiring, memory_order_acquire) && !has_cells(h)) {
                        if (looks_max)
                                look_end(h);
                        return 0;
                }
                if (!looks)
                        looks_max = look_begin(h, &r->map.seats[seat]);
                if (looks++ < looks_max) {
                        if (looks_max == LOOKS_EXPECTED)
                                (void)sched_yield();
                        else
                                relax();
                        continue;
                }
                if (looks_max)
                        look_end(h);
                looks = looks_max = 0;
                wait_for_bell(h);
        }
}

/* Reserves an answer spill; if all are in use, waits until the host has read one. */
static uint32_t spill_get(struct ring_runner *r)
{
        for (;;) {
                for (uint32_t i = 0; i < RING_SPILLS; i++) {
                        _Atomic uint32_t *used = &r->map.header->answer_spill_used[i];
                        uint32_t no = 0;
                        if (atomic_compare_exchange_strong(used, &no, 1))
                                return i;
                }
                ring_wake_host(r);
                (void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
        }
}

int ring_answer(struct ring_runner *r, const struct ring_taken *taken, const struct ring_reply *reply)
{
        struct ring_answer *a = &r->map.answers[taken->entry];
        size_t size = ring_reply_size(reply);
        if (size > r->map.shape.answer_bytes_max && size > sizeof(a->bytes))
                return -EMSGSIZE;
        a->ticket = taken->ticket;
        a->size = (uint32_t)size;
        a->spill = size > sizeof(a->bytes) ? spill_get(r) : RING_NO_SPILL;
        ring_pack_reply(a->spill == RING_NO_SPILL ? a->bytes : ring_answer_spill(&r->map, a->spill), reply);

        uint64_t number = atomic_fetch_add_explicit(&r->map.header->answer_tail, 1, memory_order_relaxed);
        atomic_store_explicit(&r->map.answer_cells[number & (r->map.shape.entries - 1)],
                (number + 1) << 16 | taken->entry, memory_order_release);
        ring_wake_host(r);
        return 0;
}

void ring_seat_idle(struct ring_runner *r, uint32_t seat)
{
        struct ring_seat *s = &r->map.seats[seat];
        if (!atomic_load_explicit(&s->ticket, memory_order_relaxed))
                return;
        atomic_store_explicit(&s->ticket, 0, memory_order_release);
        atomic_store_explicit(&s->phase, SEAT_IDLE, memory_order_release);
}

void ring_checkpoint(struct ring_runner *r, uint32_t seat, uint64_t ticket, const void *data, size_t size)
{
        struct ring_seat *s = &r->map.seats[seat];
        uint32_t version = atomic_load_explicit(&s->checkpoint_version, memory_order_relaxed) + 1;
        if (!version)
                version = 2; /* 0 means none */
        struct ring_checkpoint *c = &s->checkpoints[version % 2];
        /* Pairs with ring_host_checkpoint(): a reader that sees these writes also sees that the version has changed
         * since this element was the latest. */
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&c->ticket, ticket, memory_order_relaxed);
        atomic_store_explicit(&c->size, (uint32_t)size, memory_order_relaxed);
        ring_words_put(c->bytes, data, size);
        atomic_store_explicit(&s->checkpoint_version, version, memory_order_release);
        call_host(r);
}

int ring_ask(struct ring_runner *r, uint32_t seat, const struct ring_question *question, uint32_t timeout_ms,
        uint64_t ret_numbers[2])
{
        struct ring_call *c = &r->map.seats[seat].call;
        uint32_t asked = ((atomic_load_explicit(&c->word, memory_order_relaxed) >> 2) + 1) << 2 | CALL_ASKED;
        char text[RING_CALL_NAME_MAX + 1] = "";
        memcpy(text, question->name, strnlen(question->name, RING_CALL_NAME_MAX));
        /* Pairs with ring_host_call(): the host may still be copying the previous call, which timed out. */
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&c->service, question->service, memory_order_relaxed);
        atomic_store_explicit(&c->ticket, question->ticket, memory_order_relaxed);
        atomic_store_explicit(&c->asked_number, question->number, memory_order_relaxed);
        atomic_store_explicit(&c->size, (uint32_t)question->size, memory_order_relaxed);
        ring_words_put(c->name, text, sizeof(text));
        ring_words_put(c->bytes, question->data, question->size);
        atomic_store(&c->word, asked);
        call_host(r);
        uint64_t until_ms = clock_boot_ms() + timeout_ms;
        while (atomic_load(&c->word) == asked) {
                uint64_t now_ms = clock_boot_ms();
                if (now_ms >= until_ms) {
                        /* The host may answer at this moment: the first to change the word decides. */
                        uint32_t expected = asked;
                        if (atomic_compare_exchange_strong(&c->word, &expected, (asked & ~3u) | CALL_IDLE))
                                return -ETIMEDOUT;
                        break;
                }
                uint64_t left_ms = until_ms - now_ms;
                struct timespec left = { .tv_sec = (time_t)(left_ms / 1000),
                        .tv_nsec = (long)(left_ms % 1000) * 1000000L };
                futex_wait(&c->word, asked, &left);
        }
        memcpy(ret_numbers, c->answer_numbers, sizeof(c->answer_numbers));
        return c->status;
}
