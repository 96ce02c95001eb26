#include "ring/host_side.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "ring/futex.h"

#define NONE UINT32_MAX

/* A spill that held more than this returns its memory to the kernel after it was read. */
#define SPILL_KEEP (64 * 1024)

/* Reads a value that the runner may change at any moment exactly once, so that the checked value is the used one. */
#define READ_ONCE(value) (*(const volatile __typeof__(value) *)&(value))

int ring_host_init(struct ring_host *r, const struct ring_shape *shape)
{
        struct ring_offsets offsets;
        int error = ring_offsets(shape, &offsets);
        if (error < 0)
                return error;
        int fd = memfd_create("quiver-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        /* Sealed: if a runner could shrink the memory, the host would get SIGBUS. */
        if (ftruncate(fd, (off_t)offsets.total) < 0 ||
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                goto fail;
        /* Its size comes from the configuration, so ENOMEM is reported to the caller and does not end the host. */
        void *base = mmap(NULL, offsets.total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                goto fail;
        struct ring_flight *flights = memory_zero(shape->entries, sizeof(*flights));
        *r = (struct ring_host){ .fd = fd, .flights = flights, .free_spills = UINT32_MAX, .next_ticket = 1 };
        ring_map_init(&r->map, base, shape);
        for (uint32_t i = 0; i < shape->entries; i++)
                flights[i] = (struct ring_flight){ .spill = RING_NO_SPILL,
                        .next_free = i + 1 < shape->entries ? i + 1 : NONE };
        r->map.header->shape = *shape;
        r->map.header->version = RING_VERSION;
        r->map.header->magic = RING_MAGIC;
        return 0;
fail:
        error = -errno;
        (void)close(fd);
        return error;
}

void ring_host_free(struct ring_host *r)
{
        if (!r || !r->map.base)
                return;
        (void)munmap(r->map.base, r->map.offsets.total);
        (void)close(r->fd);
        free(r->flights);
        buffer_free(&r->scratch);
        buffer_free(&r->asked);
        *r = (struct ring_host){ .fd = -1 };
}

static bool fits_inline(size_t size)
{
        return size <= sizeof(((struct ring_entry *)NULL)->bytes);
}

bool ring_task_is_small(const struct ring_task *task)
{
        return fits_inline(ring_task_size(task));
}

/* Whether there is room for `tasks` more tasks, of which `spilled` need a spill: 0, -EAGAIN or -EBADMSG. */
static int check_room(const struct ring_host *r, uint32_t tasks, uint32_t spilled)
{
        uint32_t entries = r->map.shape.entries;
        if (entries - r->in_flight < tasks || (uint32_t)__builtin_popcount(r->free_spills) < spilled)
                return -EAGAIN;
        /* The cell of a task that was taken back stays in use until a seat has passed it.  A runner that reports a
         * wrong position within these bounds only gets its own cells overwritten, and its answers then fail the
         * checks. */
        uint64_t next = atomic_load_explicit(&r->map.header->submit_next, memory_order_acquire);
        if (next > r->tail || r->tail - next > entries)
                return -EBADMSG;
        return entries - (r->tail - next) >= tasks ? 0 : -EAGAIN;
}

bool ring_host_has_room(const struct ring_host *r, uint32_t tasks, size_t size)
{
        return check_room(r, tasks, fits_inline(size) ? 0 : tasks) != -EAGAIN;
}

/* Writes one task into a free entry and marks it queued. */
static uint32_t fill(struct ring_host *r, const struct ring_task *task, void *owner)
{
        size_t size = ring_task_size(task);
        uint32_t index = r->free_entry;
        struct ring_flight *f = &r->flights[index];
        struct ring_entry *e = &r->map.entries[index];
        r->free_entry = f->next_free;
        *f = (struct ring_flight){ .ticket = r->next_ticket++, .owner = owner, .spill = RING_NO_SPILL };
        if (!fits_inline(size)) {
                f->spill = (uint32_t)__builtin_ctz(r->free_spills);
                f->spilled = (uint32_t)size;
                r->free_spills &= ~(UINT32_C(1) << f->spill);
        }
        e->spill = f->spill;
        e->size = (uint32_t)size;
        ring_pack_task(f->spill == RING_NO_SPILL ? e->bytes : ring_task_spill(&r->map, f->spill), task);
        atomic_store_explicit(&e->word, RING_WORD(f->ticket, 0, ENTRY_QUEUED), memory_order_release);
        r->in_flight++;
        return index;
}

int ring_host_submit(
        struct ring_host *r, const struct ring_task *tasks, void *const *owners, uint32_t count, uint64_t *ret_ticket)
{
        uint32_t spilled = 0;
        for (uint32_t i = 0; i < count; i++) {
                size_t size = ring_task_size(&tasks[i]);
                if (!fits_inline(size) && size > r->map.shape.task_bytes_max)
                        return -EMSGSIZE;
                spilled += !fits_inline(size);
        }
        int error = check_room(r, count, spilled);
        if (error < 0)
                return error;
        *ret_ticket = r->next_ticket;
        for (uint32_t i = 0; i < count; i++) {
                uint64_t tag = r->next_ticket & 0xffff;
                uint64_t index = fill(r, &tasks[i], owners[i]);
                /* A seat may take only a part of the batch: each cell holds how many tasks are left from it on. */
                atomic_store_explicit(&r->map.submit_cells[(r->tail + i) & (r->map.shape.entries - 1)],
                        index | tag << 16 | (uint64_t)(count - i) << 32, memory_order_relaxed);
        }
        r->tail += count;
        atomic_store_explicit(&r->map.header->submit_tail, r->tail, memory_order_release);
        r->needs_bell = true;
        return 0;
}

void ring_host_ring(struct ring_host *r)
{
        if (!r->needs_bell)
                return;
        r->needs_bell = false;
        struct ring_header *h = r->map.header;
        /* Pairs with wait_for_bell(): the tasks are published before seats_asleep is read. */
        atomic_thread_fence(memory_order_seq_cst);
        uint32_t asleep = atomic_load_explicit(&h->seats_asleep, memory_order_relaxed);
        if (!asleep)
                return;
        uint64_t waiting = r->tail - atomic_load_explicit(&h->submit_next, memory_order_relaxed);
        /* Pairs with look_end(): the seat that polls takes one of them, or wakes another seat for it. */
        if (atomic_load_explicit(&h->seat_is_looking, memory_order_relaxed) && waiting)
                waiting--;
        if (!waiting)
                return;
        atomic_fetch_add(&h->seat_bell, 1);
        futex_wake(&h->seat_bell, waiting < (uint64_t)INT_MAX ? (int)waiting : INT_MAX);
}

void ring_host_expect(struct ring_host *r)
{
        struct ring_header *h = r->map.header;
        if (!atomic_load_explicit(&h->seats_asleep, memory_order_relaxed) ||
                atomic_load_explicit(&h->seat_is_looking, memory_order_relaxed))
                return;
        atomic_store_explicit(&h->task_is_expected, 1, memory_order_relaxed);
        atomic_fetch_add(&h->seat_bell, 1);
        futex_wake(&h->seat_bell, 1);
}

/* Puts an entry, and its spill, back on the free list. */
static void release(struct ring_host *r, uint32_t index)
{
        struct ring_flight *f = &r->flights[index];
        if (f->spill != RING_NO_SPILL) {
                if (f->spilled > SPILL_KEEP)
                        (void)fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                ring_task_spill(&r->map, f->spill) - r->map.base,
                                (off_t)r->map.offsets.task_spill_stride);
                r->free_spills |= UINT32_C(1) << f->spill;
        }
        *f = (struct ring_flight){ .spill = RING_NO_SPILL, .next_free = r->free_entry };
        r->free_entry = index;
        r->in_flight--;
}

/* Copies an entry's answer out of shared memory, so that it cannot change while it is checked. */
static int copy_answer(struct ring_host *r, uint32_t index, uint64_t *ret_ticket)
{
        struct ring_answer *a = &r->map.answers[index];
        uint32_t size = READ_ONCE(a->size);
        uint32_t spill = READ_ONCE(a->spill);
        bool is_inline = spill == RING_NO_SPILL;
        if (size > (is_inline ? sizeof(a->bytes) : r->map.offsets.answer_spill_stride))
                return -EBADMSG;
        if (!is_inline && spill >= RING_SPILLS)
                return -EBADMSG;
        const uint8_t *from = is_inline ? a->bytes : ring_answer_spill(&r->map, spill);
        buffer_clear(&r->scratch);
        buffer_put(&r->scratch, from, size);
        if (!is_inline) {
                if (size > SPILL_KEEP)
                        (void)fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from - r->map.base,
                                (off_t)r->map.offsets.answer_spill_stride);
                atomic_store(&r->map.header->answer_spill_used[spill], 0);
        }
        *ret_ticket = READ_ONCE(a->ticket);
        return 0;
}

static bool is_runner_outcome(int32_t outcome)
{
        return (outcome >= OUTCOME_DONE && outcome <= OUTCOME_UNAVAILABLE) || outcome == OUTCOME_LATER ||
               outcome == OUTCOME_LIMITED || outcome == OUTCOME_INTERRUPTED;
}

int ring_host_next(struct ring_host *r, struct ring_reply *ret, void **ret_owner)
{
        uint32_t mask = r->map.shape.entries - 1;
        uint64_t cell = atomic_load_explicit(&r->map.answer_cells[r->answer_head & mask], memory_order_acquire);
        if (cell >> 16 != ((r->answer_head + 1) & (UINT64_MAX >> 16)))
                return 0;
        uint32_t index = (uint32_t)(cell & 0xffff);
        if (index > mask || !r->flights[index].ticket)
                return -EBADMSG;
        uint64_t ticket = 0;
        int error = copy_answer(r, index, &ticket);
        if (error < 0)
                return error;
        struct ring_reply reply;
        error = ring_unpack_reply(r->scratch.data, r->scratch.size, &reply);
        if (error < 0)
                return error;
        if (ticket != r->flights[index].ticket || reply.ticket != ticket || !is_runner_outcome(reply.outcome))
                return -EBADMSG;
        r->answer_head++;
        *ret = reply;
        *ret_owner = r->flights[index].owner;
        release(r, index);
        return 1;
}

bool ring_host_sleep(struct ring_host *r)
{
        atomic_store(&r->map.header->host_is_asleep, 1);
        uint64_t cell = atomic_load(&r->map.answer_cells[r->answer_head & (r->map.shape.entries - 1)]);
        bool is_answered = cell >> 16 == ((r->answer_head + 1) & (UINT64_MAX >> 16));
        if (!is_answered && atomic_load(&r->map.header->attention) == r->attention)
                return true;
        ring_host_awake(r);
        return false;
}

void ring_host_awake(struct ring_host *r)
{
        atomic_store_explicit(&r->map.header->host_is_asleep, 0, memory_order_relaxed);
}

/* The entry that carries `ticket`, or NONE.  A linear search: only rare paths need it. */
static uint32_t find(const struct ring_host *r, uint64_t ticket)
{
        for (uint32_t i = 0; ticket && i < r->map.shape.entries; i++)
                if (r->flights[i].ticket == ticket)
                        return i;
        return NONE;
}

bool ring_host_take_back(struct ring_host *r, uint64_t ticket)
{
        uint32_t index = find(r, ticket);
        if (index == NONE)
                return false;
        uint64_t queued = RING_WORD(ticket, 0, ENTRY_QUEUED);
        if (!atomic_compare_exchange_strong(&r->map.entries[index].word, &queued, RING_WORD(ticket, 0, ENTRY_TAKEN)))
                return false;
        release(r, index);
        return true;
}

void *ring_host_forget(struct ring_host *r, uint64_t ticket)
{
        uint32_t index = find(r, ticket);
        if (index == NONE)
                return NULL;
        void *owner = r->flights[index].owner;
        release(r, index);
        return owner;
}

bool ring_host_each(const struct ring_host *r, uint32_t *cursor, struct ring_view *ret)
{
        while (*cursor < r->map.shape.entries) {
                uint32_t index = (*cursor)++;
                const struct ring_flight *f = &r->flights[index];
                if (!f->ticket)
                        continue;
                uint64_t word = atomic_load(&r->map.entries[index].word);
                *ret = (struct ring_view){ .ticket = f->ticket, .owner = f->owner };
                /* A word with another ticket was overwritten.  It no longer shows whether the task was started, so the
                 * task counts as started. */
                enum ring_state state = RING_WORD_STATE(word);
                ret->is_broken = RING_WORD_TICKET(word) != f->ticket ||
                                 (state != ENTRY_QUEUED && state != ENTRY_STARTED) ||
                                 RING_WORD_SEAT(word) >= r->map.shape.seats;
                ret->is_started = ret->is_broken || state == ENTRY_STARTED;
                ret->seat = RING_WORD_SEAT(word) % r->map.shape.seats;
                return true;
        }
        return false;
}

void ring_host_seat(const struct ring_host *r, uint32_t seat, struct ring_seat_view *ret)
{
        struct ring_seat *s = &r->map.seats[seat];
        ret->ticket = atomic_load_explicit(&s->ticket, memory_order_acquire);
        ret->started_ns = atomic_load_explicit(&s->started_ns, memory_order_relaxed);
        ret->progressed_ns = atomic_load_explicit(&s->progressed_ns, memory_order_relaxed);
        ret->progress_done = atomic_load_explicit(&s->progress_done, memory_order_relaxed);
        ret->progress_total = atomic_load_explicit(&s->progress_total, memory_order_relaxed);
}

void ring_host_stop(struct ring_host *r, uint32_t seat, uint64_t ticket)
{
        atomic_store_explicit(&r->map.seats[seat].stop, RING_STOP(ticket), memory_order_release);
}

void ring_host_retire(struct ring_host *r)
{
        struct ring_header *h = r->map.header;
        atomic_store(&h->is_retiring, 1);
        atomic_fetch_add(&h->seat_bell, 1);
        futex_wake(&h->seat_bell, INT_MAX);
}

void ring_host_fault(const struct ring_host *r, uint32_t seat, struct ring_fault_view *ret)
{
        struct ring_fault *f = seat == RING_NO_SEAT ? &r->map.header->thread_fault : &r->map.seats[seat].fault;
        *ret = (struct ring_fault_view){ .kind = FAULT_NONE };
        uint32_t kind = atomic_load_explicit(&f->kind, memory_order_acquire);
        if (kind != FAULT_SIGNAL && kind != FAULT_EXIT)
                return;
        ret->kind = (enum ring_fault_kind)kind;
        ret->signal = f->signal;
        ret->code = f->code;
        ret->address = f->address;
        memcpy(ret->text, f->text, sizeof(ret->text));
        memcpy(ret->places, f->places, sizeof(ret->places));
        uint32_t size = READ_ONCE(f->text_size);
        ret->text[size < sizeof(ret->text) ? size : sizeof(ret->text) - 1] = 0;
        uint32_t cause = READ_ONCE(f->cause_size);
        ret->cause_size = cause <= strlen(ret->text) ? cause : 0;
}

int ring_host_checkpoint(const struct ring_host *r, uint32_t seat, uint64_t ticket, uint8_t ret[QV_CHECKPOINT_MAX],
        uint32_t *ret_version)
{
        struct ring_seat *s = &r->map.seats[seat];
        uint32_t version = atomic_load_explicit(&s->checkpoint_version, memory_order_acquire);
        const struct ring_checkpoint *c = &s->checkpoints[version % 2];
        uint32_t size = atomic_load_explicit(&c->size, memory_order_relaxed);
        if (!version || atomic_load_explicit(&c->ticket, memory_order_relaxed) != ticket || size > QV_CHECKPOINT_MAX)
                return -ENOENT;
        ring_words_get(ret, c->bytes, size);
        /* Pairs with the fence in ring_checkpoint(): if we copied bytes of the checkpoint that overwrites this one, we
         * also see that the version has changed.  Then there is a newer one, and `attention` has grown for it. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&s->checkpoint_version, memory_order_relaxed) != version)
                return -ENOENT;
        *ret_version = version;
        return (int)size;
}

bool ring_host_has_attention(struct ring_host *r)
{
        uint32_t attention = atomic_load_explicit(&r->map.header->attention, memory_order_acquire);
        if (attention == r->attention)
                return false;
        r->attention = attention;
        return true;
}

bool ring_host_call(struct ring_host *r, uint32_t seat, uint32_t known_word, struct ring_call_view *ret)
{
        struct ring_call *c = &r->map.seats[seat].call;
        uint32_t word = atomic_load_explicit(&c->word, memory_order_acquire);
        if (RING_CALL_STATE(word) != CALL_ASKED || word == known_word)
                return false;
        struct ring_call_view view = { .word = word };
        view.service = atomic_load_explicit(&c->service, memory_order_relaxed);
        view.ticket = atomic_load_explicit(&c->ticket, memory_order_relaxed);
        view.number = atomic_load_explicit(&c->asked_number, memory_order_relaxed);
        view.size = (uint32_t)min_u64(atomic_load_explicit(&c->size, memory_order_relaxed), QV_ROOM_ENTRY_MAX);
        ring_words_get(view.name, c->name, sizeof(view.name));
        view.name[sizeof(view.name) - 1] = 0;
        buffer_clear(&r->asked);
        ring_words_get(buffer_reserve(&r->asked, view.size), c->bytes, view.size);
        r->asked.size = view.size;
        view.bytes = r->asked.data;
        /* Pairs with the fence in ring_ask(): the seat may have timed out and be writing its next call. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&c->word, memory_order_relaxed) != word)
                return false;
        *ret = view;
        return true;
}

bool ring_host_reply(struct ring_host *r, uint32_t seat, uint32_t word, int status, const uint64_t numbers[2])
{
        struct ring_call *c = &r->map.seats[seat].call;
        uint32_t asked = word;
        /* The seat reads `status` and the numbers once the word is ANSWERED, which only the host sets.  A late reply
         * must not change them after the seat's next call was answered. */
        if (atomic_load(&c->word) != asked)
                return false;
        c->status = status;
        c->answer_numbers[0] = numbers[0];
        c->answer_numbers[1] = numbers[1];
        if (!atomic_compare_exchange_strong(&c->word, &asked, (asked & ~3u) | CALL_ANSWERED))
                return false;
        futex_wake(&c->word, 1);
        return true;
}
