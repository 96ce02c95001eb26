/* The host against a runner that writes what it likes into the shared memory.
 *
 * The input is a script: each step either lets the host do something, or lets the runner write chosen bytes to a chosen
 * place.  Whatever it is, nothing may be read or written out of bounds, and every task that was submitted is accounted
 * for exactly once: answered, taken back or forgotten. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ring/host_side.h"
#include "ring/runner_side.h"

#define ENTRIES   8
#define SEATS     2
#define TASKS_MAX 512

static const struct ring_shape shape = {
        .seats = SEATS, .entries = ENTRIES, .task_bytes_max = 4096, .answer_bytes_max = 4096
};

struct script {
        const uint8_t *data;
        size_t size;
};

/* The next number of the script; 0 at its end. */
static uint64_t next(struct script *s, size_t bytes)
{
        uint64_t value = 0;
        if (bytes > s->size)
                bytes = s->size;
        memcpy(&value, s->data, bytes);
        s->data += bytes;
        s->size -= bytes;
        return value;
}

struct play {
        struct ring_host host;
        struct ring_runner runner;
        uint8_t outcomes[TASKS_MAX]; /* how often each task was accounted for; its address is the task's owner */
        uint64_t tickets[TASKS_MAX];
        uint32_t submitted;
        struct ring_taken taken[ENTRIES]; /* what an honest seat has started */
        uint32_t taken_count;
};

static void check(bool is_true)
{
        if (!is_true)
                abort();
}

static void account(struct play *p, void *owner)
{
        uint8_t *outcome = owner;
        check(outcome >= p->outcomes && outcome < p->outcomes + p->submitted);
        check(++*outcome == 1);
}

static void submit(struct play *p, struct script *s)
{
        static const uint8_t bytes[5000];
        struct ring_task tasks[3];
        void *owners[3];
        uint32_t count = 1 + (uint32_t)next(s, 1) % 3;
        if (p->submitted + count > TASKS_MAX)
                return;
        for (uint32_t i = 0; i < count; i++) {
                tasks[i] = (struct ring_task){ .id = "i", .key = "k", .handler = "h", .payload = bytes };
                tasks[i].payload_size = next(s, 2) % sizeof(bytes);
                owners[i] = &p->outcomes[p->submitted + i];
        }
        uint64_t ticket;
        if (ring_host_submit(&p->host, tasks, owners, count, &ticket) == 0)
                for (uint32_t i = 0; i < count; i++)
                        p->tickets[p->submitted++] = ticket + i;
        ring_host_ring(&p->host);
}

/* What a seat of good will does, unless it would fall over what was written here. */
static void take(struct play *p, struct script *s)
{
        uint64_t first = p->host.map.header->submit_next;
        bool is_sane = p->host.map.header->submit_tail == p->host.tail && p->host.tail - first <= ENTRIES;
        for (uint64_t i = first; is_sane && i < p->host.tail; i++) {
                uint64_t cell = p->host.map.submit_cells[i % ENTRIES];
                const struct ring_entry *e = &p->host.map.entries[cell % ENTRIES];
                is_sane = cell >> 32 && e->spill == RING_NO_SPILL && e->size <= sizeof(e->bytes);
        }
        if (!is_sane || p->taken_count == ENTRIES)
                return;
        p->host.map.header->is_retiring = 1; /* do not wait */
        p->taken_count += ring_take(&p->runner, (uint32_t)next(s, 1) % SEATS, &p->taken[p->taken_count], 1);
}

static void answer(struct play *p, struct script *s)
{
        static const uint8_t bytes[5000];
        if (!p->taken_count)
                return;
        struct ring_reply reply = { .ticket = p->taken[--p->taken_count].ticket, .error = "" };
        reply.outcome = (int32_t)next(s, 1) % 20;
        reply.result = bytes;
        reply.result_size = next(s, 1);
        (void)ring_answer(&p->runner, &p->taken[p->taken_count], &reply);
}

/* A well-formed answer, in turn, to a task that may have another ticket or be none at all. */
static void forge_answer(struct play *p, struct script *s)
{
        uint32_t index = (uint32_t)next(s, 1) % ENTRIES;
        uint64_t ticket = p->host.flights[index].ticket + next(s, 1) % 4;
        struct ring_answer *a = &p->host.map.answers[index];
        struct ring_reply reply = { .ticket = ticket, .outcome = (int32_t)next(s, 1) % 20, .error = "" };
        ring_pack_reply(a->bytes, &reply);
        a->ticket = ticket;
        a->spill = RING_NO_SPILL;
        a->size = (uint32_t)ring_reply_size(&reply);
        p->host.map.answer_cells[p->host.answer_head % ENTRIES] = (p->host.answer_head + 1) << 16 | index;
}

/* Texts that do not end. */
static void fill_texts(struct ring_seat *seat, uint64_t value)
{
        memset(seat->fault.text, 'x', sizeof(seat->fault.text));
        seat->fault.kind = FAULT_SIGNAL;
        seat->fault.text_size = (uint32_t)value;
        memset((void *)seat->call.name, 'x', sizeof(seat->call.name));
        seat->call.size = (uint32_t)value;
        seat->call.word = CALL_ASKED;
}

/* The runner's pen: anywhere in the small parts of the memory, or at one of the places that matter. */
static void scribble(struct play *p, struct script *s)
{
        struct ring_map *m = &p->host.map;
        uint32_t index = (uint32_t)next(s, 1);
        struct ring_seat *seat = &m->seats[index % SEATS];
        struct ring_answer *a = &m->answers[index % ENTRIES];
        struct ring_entry *e = &m->entries[index % ENTRIES];
        uint64_t value = next(s, 8);
        switch (next(s, 1) % 15) {
        case 0:
                m->header->submit_next = value;
                break;
        case 1:
                m->header->answer_tail = value;
                break;
        case 2:
                m->submit_cells[index % ENTRIES] = value;
                break;
        case 3: /* announces an answer, in turn or not */
                m->answer_cells[index % ENTRIES] = (p->host.answer_head + 1 + value % 2) << 16 | value >> 60;
                break;
        case 4:
                m->answer_cells[index % ENTRIES] = value;
                break;
        case 5:
                e->word = value;
                break;
        case 6: /* close to the truth */
                e->word = RING_WORD(p->host.flights[index % ENTRIES].ticket, value >> 8, value);
                break;
        case 7:
                a->ticket = value % 2 ? value : p->host.flights[index % ENTRIES].ticket;
                break;
        case 8:
                a->size = (uint32_t)value;
                break;
        case 9:
                a->spill = value % 2 ? (uint32_t)(value >> 32) : (uint32_t)value % (RING_SPILLS + 2);
                break;
        case 10:
                memcpy(a->bytes + value % (sizeof(a->bytes) - 8), &value, sizeof(value));
                break;
        case 11:
                m->header->answer_spill_used[index % RING_SPILLS] = (uint32_t)value;
                break;
        case 12:
                memcpy((uint8_t *)seat + value % (sizeof(*seat) - 8), &value, sizeof(value));
                break;
        case 13:
                fill_texts(seat, value);
                break;
        default: /* anything but the spills */
                memcpy(m->base + value % (m->offsets.task_spills - 8), s->data, s->size < 8 ? s->size : 8);
        }
}

/* Reads all that a host reads of the answer. */
static void read_reply(const struct ring_reply *reply)
{
        volatile size_t sum = strlen(reply->error);
        for (size_t i = 0; i < reply->result_size; i++)
                sum += ((const uint8_t *)reply->result)[i];
        for (size_t i = 0; i < reply->checkpoint_size; i++)
                sum += ((const uint8_t *)reply->checkpoint)[i];
        struct reader from;
        struct ring_submit submit;
        reader_init(&from, reply->submits, reply->submits_size);
        for (uint32_t i = 0; i < reply->submits_count && !ring_next_submit(&from, &submit); i++)
                sum += strlen(submit.handler) + strlen(submit.key) + submit.payload_size;
        (void)sum;
}

static void look_for_answers(struct play *p)
{
        struct ring_reply reply;
        void *owner = NULL;
        while (ring_host_next(&p->host, &reply, &owner) == 1) {
                read_reply(&reply);
                account(p, owner);
                check(reply.outcome <= OUTCOME_UNAVAILABLE || reply.outcome == OUTCOME_LATER ||
                        reply.outcome == OUTCOME_LIMITED || reply.outcome == OUTCOME_INTERRUPTED);
                check(reply.ticket == p->tickets[(uint8_t *)owner - p->outcomes]);
        }
}

static void look_at_seats(struct play *p)
{
        for (uint32_t i = 0; i < SEATS; i++) {
                struct ring_seat_view seat;
                struct ring_fault_view fault;
                struct ring_call_view call;
                static uint8_t checkpoint[QV_CHECKPOINT_MAX];
                uint32_t version;
                ring_host_seat(&p->host, i, &seat);
                ring_host_fault(&p->host, i, &fault);
                check(strlen(fault.text) < sizeof(fault.text));
                int size = ring_host_checkpoint(&p->host, i, seat.ticket, checkpoint, &version);
                check(size <= (int)sizeof(checkpoint));
                if (ring_host_call(&p->host, i, 0, &call)) {
                        check(strlen(call.name) < sizeof(call.name));
                        check(call.size <= QV_ROOM_ENTRY_MAX && call.size <= p->host.asked.size);
                        (void)ring_host_reply(&p->host, i, call.word, 0, (const uint64_t[2]){ 1 });
                }
                ring_host_stop(&p->host, i, seat.ticket);
        }
        (void)ring_host_has_attention(&p->host);
        (void)ring_host_sleep(&p->host);
        ring_host_awake(&p->host);
}

static void take_back(struct play *p, struct script *s)
{
        uint64_t ticket = next(s, 2) % (p->host.next_ticket + 1);
        uint32_t cursor = 0;
        struct ring_view view;
        while (ring_host_each(&p->host, &cursor, &view)) {
                check(view.seat < SEATS);
                if (view.ticket != ticket)
                        continue;
                if (ring_host_take_back(&p->host, ticket))
                        account(p, view.owner);
        }
        check(!ring_host_take_back(&p->host, 0));
}

/* The runner is gone: what is in flight is forgotten, and then all is accounted for. */
static void settle(struct play *p)
{
        uint32_t cursor = 0;
        struct ring_view view;
        while (ring_host_each(&p->host, &cursor, &view)) {
                check(ring_host_forget(&p->host, view.ticket) == view.owner);
                account(p, view.owner);
        }
        check(p->host.in_flight == 0);
        check(p->host.free_spills == UINT32_MAX);
        for (uint32_t i = 0; i < p->submitted; i++)
                check(p->outcomes[i] == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct script s = { data, size };
        static struct play p;
        memset(&p, 0, sizeof(p));
        check(ring_host_init(&p.host, &shape) == 0);
        p.runner.map = p.host.map;
        p.runner.bell_fd = -1;
        while (s.size) {
                switch (next(&s, 1) % 9) {
                case 0:
                        submit(&p, &s);
                        break;
                case 1:
                        take(&p, &s);
                        break;
                case 2:
                        answer(&p, &s);
                        break;
                case 3:
                        look_for_answers(&p);
                        break;
                case 4:
                        look_at_seats(&p);
                        break;
                case 5:
                        take_back(&p, &s);
                        break;
                case 6:
                        forge_answer(&p, &s);
                        break;
                default:
                        scribble(&p, &s);
                }
        }
        look_for_answers(&p);
        look_at_seats(&p);
        settle(&p);
        ring_host_free(&p.host);
        return 0;
}
