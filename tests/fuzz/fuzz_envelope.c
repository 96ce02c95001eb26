/* Any bytes: parse never reads outside them, and what it accepts survives put and parse unchanged, packed or not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "task/envelope.h"
#include "task/note.h"
#include "task/packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

/* Where both kinds of lines are mixed they are sorted when they are written: compared one by one. */
static void demand_same_others(struct span back, struct span lines)
{
        struct span name, value, back_name, back_value;
        while (others_next(&lines, &name, &value)) {
                demand(others_next(&back, &back_name, &back_value));
                demand(span_is(name, back_name) && span_is(value, back_value));
        }
        demand(!others_next(&back, &back_name, &back_value));
}

/* One that is parsed may hold as bytes what would be put as text; what it stands for is the same. */
static void demand_same_headers(struct span back, struct span lines)
{
        struct task_header header, other;
        struct buffer value = { 0 }, again = { 0 };
        while (header_next(&lines, &header)) {
                demand(header_next(&back, &other));
                demand(span_is(header.name, other.name) && span_is(header.value, other.value));
                demand(header.is_base64 == other.is_base64);
                buffer_clear(&value);
                buffer_clear(&again);
                header_put_value(&value, &header);
                demand(value.size <= (header.is_base64 ? TASK_HEADER_BYTES_MAX : TASK_HEADER_MAX));
                demand(header_put_bytes(
                               &again, header.name, (struct span){ (const char *)value.data, value.size }, NULL) == 0);
        }
        demand(!header_next(&back, &other));
        buffer_free(&value);
        buffer_free(&again);
}

static void demand_same(const struct envelope *back, const struct envelope *e)
{
        demand(span_is(back->key, e->key) && span_is(back->handler, e->handler) && span_is(back->id, e->id));
        demand(span_is(back->payload, e->payload));
        demand_same_headers(back->headers, e->headers);
        demand_same_others(back->others, e->others);
        demand(span_is(envelope_needs(back), envelope_needs(e)));
        demand(back->attempts == e->attempts && back->not_before_ms == e->not_before_ms);
        demand(back->unique_ms == e->unique_ms && back->timeout_ms == e->timeout_ms && back->reply_ms == e->reply_ms);
        demand(back->submitted_ms == e->submitted_ms);
        demand(back->is_merge == e->is_merge && back->debounce_ms == e->debounce_ms);
}

static void round_trip(const struct envelope *e)
{
        struct buffer bytes = { 0 };
        struct envelope back;
        demand(envelope_check(e, NULL) == 0);
        envelope_put(&bytes, e);
        demand(envelope_parse(bytes.data, bytes.size, &back, NULL) == 0);
        demand_same(&back, e);
        demand(back.lane == e->lane);
        buffer_free(&bytes);
}

static void packed_round_trip(const struct envelope *e)
{
        struct buffer bytes = { 0 };
        struct envelope back;
        char id[TASK_ID_MADE_ROOM];
        uint32_t shard = 0;
        if (e->id.size)
                demand(task_id_check(e->id, &shard, NULL) == 0);
        packed_put_head(&bytes, e, shard);
        buffer_put(&bytes, e->payload.data, e->payload.size);
        demand(packed_parse((struct span){ (const char *)bytes.data, bytes.size }, shard, id, &back, NULL) == 0);
        demand_same(&back, e);
        buffer_free(&bytes);
}

static void note_round_trip(const struct task_note *note)
{
        struct buffer bytes = { 0 };
        struct task_note back;
        note_put(&bytes, note);
        demand(note_parse(bytes.data, bytes.size, &back) == 0);
        demand(back.attempts == note->attempts && back.crashes == note->crashes);
        demand(span_is(back.events, note->events) && span_is(back.checkpoint, note->checkpoint));
        buffer_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct envelope e;
        struct error error;
        struct task_note note;
        char id[TASK_ID_MADE_ROOM];
        if (envelope_parse(data, size, &e, &error) == 0) {
                round_trip(&e);
                packed_round_trip(&e);
        }
        if (packed_parse((struct span){ (const char *)data, size }, 7, id, &e, &error) == 0 &&
                (!e.id.size || e.id.data == id)) {
                round_trip(&e);
                packed_round_trip(&e);
        }
        if (note_parse(data, size, &note) == 0)
                note_round_trip(&note);
        return 0;
}
