#include "task/note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define MAGIC "qn1\n"
#define EVENT "event:"

static bool line_next(struct span *text, struct span *ret_line)
{
        const char *newline = text->size ? memchr(text->data, '\n', text->size) : NULL;
        if (!newline)
                return false;
        *ret_line = (struct span){ text->data, (size_t)(newline - text->data) };
        text->data += ret_line->size + 1;
        text->size -= ret_line->size + 1;
        return true;
}

static bool begins_with(struct span line, const char *name, struct span *ret_rest)
{
        size_t size = strlen(name);
        if (line.size < size || memcmp(line.data, name, size) != 0)
                return false;
        *ret_rest = (struct span){ line.data + size, line.size - size };
        return true;
}

/* Reads the decimal number at the start of *text and moves *text past it; -EBADMSG if there is none. */
static int number_take(struct span *text, uint64_t *ret_value)
{
        uint64_t value = 0;
        size_t at = 0;
        for (; at < text->size && at < 19 && text->data[at] >= '0' && text->data[at] <= '9'; at++)
                value = value * 10 + (uint64_t)(text->data[at] - '0');
        if (!at)
                return -EBADMSG;
        text->data += at;
        text->size -= at;
        *ret_value = value;
        return 0;
}

static int count_parse(struct span text, uint32_t *ret_count)
{
        uint64_t value;
        if (number_take(&text, &value) || text.size || value > NOTE_COUNT_MAX)
                return -EBADMSG;
        *ret_count = (uint32_t)value;
        return 0;
}

bool note_holder_is_good(struct span holder)
{
        for (size_t i = 0; i < holder.size; i++)
                if (holder.data[i] <= ' ' || holder.data[i] > '~')
                        return false;
        return holder.size && holder.size <= NOTE_HOLDER_MAX;
}

void note_clear_start(struct task_note *note)
{
        note->started_epoch = note->until_ms = 0;
        note->holder = (struct span){ 0 };
}

static int line_parse(struct task_note *note, struct span line)
{
        struct span rest;
        if (begins_with(line, EVENT, &rest)) {
                if (!note->events.size)
                        note->events.data = line.data;
                note->events.size = (size_t)(line.data + line.size + 1 - note->events.data);
                return 0;
        }
        if (note->events.size)
                return -EBADMSG;
        if (begins_with(line, "attempts:", &rest))
                return count_parse(rest, &note->attempts);
        if (begins_with(line, "crashes:", &rest))
                return count_parse(rest, &note->crashes);
        if (begins_with(line, "interruptions:", &rest))
                return count_parse(rest, &note->interruptions);
        if (begins_with(line, "laters:", &rest))
                return count_parse(rest, &note->laters);
        if (begins_with(line, "started:", &rest))
                return number_take(&rest, &note->started_epoch) || rest.size || note->started_epoch > TASK_NUMBER_MAX
                               ? -EBADMSG
                               : 0;
        if (begins_with(line, "holder:", &note->holder))
                return note_holder_is_good(note->holder) ? 0 : -EBADMSG;
        if (begins_with(line, "until:", &rest))
                return number_take(&rest, &note->until_ms) || rest.size || note->until_ms > TASK_NUMBER_MAX ? -EBADMSG
                                                                                                            : 0;
        if (begins_with(line, "merged:", &rest))
                return count_parse(rest, &note->merged);
        if (begins_with(line, "mergedat:", &rest))
                return number_take(&rest, &note->merged_ms) || rest.size || note->merged_ms > TASK_NUMBER_MAX ? -EBADMSG
                                                                                                              : 0;
        if (span_is(line, SPAN_TEXT("debounced:1"))) {
                note->is_debounced = true;
                return 0;
        }
        if (span_is(line, SPAN_TEXT("suspect:1"))) {
                note->is_suspect = true;
                return 0;
        }
        return -EBADMSG;
}

int note_parse(const void *data, size_t size, struct task_note *ret_note)
{
        struct task_note note = { 0 };
        struct span text = { data, size };
        if (size) {
                struct span line;
                if (!begins_with(text, MAGIC, &text))
                        return -EBADMSG;
                for (;;) {
                        if (!line_next(&text, &line))
                                return -EBADMSG;
                        if (!line.size)
                                break;
                        if (line_parse(&note, line))
                                return -EBADMSG;
                }
                if (text.size > NOTE_CHECKPOINT_MAX)
                        return -EBADMSG;
                note.checkpoint = text;
        }
        *ret_note = note;
        return 0;
}

bool note_is_empty(const struct task_note *note)
{
        return !note->attempts && !note->crashes && !note->interruptions && !note->laters && !note->started_epoch &&
               !note->is_suspect && !note->events.size && !note->checkpoint.size && !note->merged &&
               !note->is_debounced;
}

void note_put(struct buffer *to, const struct task_note *note)
{
        buffer_put(to, MAGIC, sizeof(MAGIC) - 1);
        if (note->attempts)
                buffer_printf(to, "attempts:%" PRIu32 "\n", note->attempts);
        if (note->crashes)
                buffer_printf(to, "crashes:%" PRIu32 "\n", note->crashes);
        if (note->interruptions)
                buffer_printf(to, "interruptions:%" PRIu32 "\n", note->interruptions);
        if (note->laters)
                buffer_printf(to, "laters:%" PRIu32 "\n", note->laters);
        if (note->started_epoch)
                buffer_printf(to, "started:%" PRIu64 "\n", note->started_epoch);
        if (note->started_epoch && note->holder.size)
                buffer_printf(to, "holder:%.*s\n", (int)note->holder.size, note->holder.data);
        if (note->started_epoch && note->until_ms)
                buffer_printf(to, "until:%" PRIu64 "\n", note->until_ms);
        if (note->merged)
                buffer_printf(to, "merged:%" PRIu32 "\nmergedat:%" PRIu64 "\n", note->merged, note->merged_ms);
        if (note->is_debounced)
                buffer_printf(to, "debounced:1\n");
        if (note->is_suspect)
                buffer_printf(to, "suspect:1\n");
        buffer_put(to, note->events.data, note->events.size);
        buffer_put(to, "\n", 1);
        buffer_put(to, note->checkpoint.data, note->checkpoint.size);
}

void note_merge(struct task_note *note, uint64_t at_ms, uint32_t count)
{
        note->merged = (uint32_t)min_u64((uint64_t)note->merged + count, NOTE_COUNT_MAX);
        note->merged_ms = at_ms;
}

bool note_has_started(const struct task_note *note)
{
        return note->attempts || note->crashes || note->interruptions || note->started_epoch || note->is_suspect ||
               note->checkpoint.size;
}

static size_t events_count(struct span events)
{
        size_t count = 0;
        for (size_t i = 0; i < events.size; i++)
                count += events.data[i] == '\n';
        return count;
}

void note_add_event(struct task_note *note, struct buffer *scratch, uint64_t at_ms, const char *kind, struct span text)
{
        struct span kept = note->events;
        struct span oldest;
        for (size_t count = events_count(kept); count >= NOTE_EVENTS_MAX; count--)
                (void)line_next(&kept, &oldest);
        /* The old events may point into `scratch`, which is about to move. */
        struct buffer events = { 0 };
        buffer_put(&events, kept.data, kept.size);
        buffer_printf(&events, EVENT "%" PRIu64 " %s", at_ms, kind);
        if (text.size) {
                buffer_put(&events, " ", 1);
                size_t from = events.size;
                buffer_put(&events, text.data, min_u64(text.size, NOTE_TEXT_MAX));
                for (size_t i = from; i < events.size; i++)
                        if (events.data[i] == '\n')
                                events.data[i] = NOTE_NEWLINE;
                        else if ((events.data[i] < 0x20 && events.data[i] != NOTE_NEWLINE) || events.data[i] == 0x7f)
                                events.data[i] = ' ';
        }
        buffer_put(&events, "\n", 1);
        buffer_free(scratch);
        *scratch = events;
        note->events = (struct span){ (const char *)events.data, events.size };
}

/* The count comes from the store and may have any value: it stops at the maximum instead of wrapping. */
static void count_up(uint32_t *count)
{
        if (*count < NOTE_COUNT_MAX)
                (*count)++;
}

/* Drops the last event if it is of that kind. */
static void drop_last_event(struct task_note *note, const char *kind)
{
        struct span rest = note->events;
        struct span last = note->events;
        struct note_event event = { 0 };
        bool is_any = false;
        for (; rest.size; is_any = true) {
                last = rest;
                if (!note_event_next(&rest, &event))
                        return;
        }
        if (is_any && span_is(event.kind, span_of_text(kind)))
                note->events.size -= last.size;
}

void note_charge(struct task_note *note, struct buffer *scratch, uint64_t at_ms, enum task_cost cost, struct span text)
{
        static const char *const kinds[COSTS] = { "waited", "attempt", "crash", "interruption", "later" };
        switch (cost) {
        case COST_NONE:
                break;
        case COST_ATTEMPT:
                count_up(&note->attempts);
                break;
        case COST_CRASH:
                count_up(&note->crashes);
                break;
        case COST_INTERRUPTION:
                count_up(&note->interruptions);
                break;
        case COST_LATER:
                count_up(&note->laters);
                drop_last_event(note, kinds[cost]);
                break;
        case COSTS:
                return;
        }
        note_add_event(note, scratch, at_ms, kinds[cost], text);
}

struct span note_first_line(struct span text)
{
        size_t size = 0;
        while (size < text.size && text.data[size] != '\n' && text.data[size] != NOTE_NEWLINE)
                size++;
        return (struct span){ text.data, size };
}

void note_put_lines(struct buffer *to, struct span text)
{
        size_t from = to->size;
        buffer_put(to, text.data, text.size);
        for (size_t i = from; i < to->size; i++)
                if (to->data[i] == NOTE_NEWLINE)
                        to->data[i] = '\n';
}

/* Whether the character may stand before the @ of a place. */
static bool is_gap(char c)
{
        return c == ' ' || c == '\n' || c == NOTE_NEWLINE;
}

struct span note_take_where(struct span *text)
{
        for (size_t at = text->size; at-- > 0;) {
                struct span rest = { text->data + at + 1, text->size - at - 1 };
                if (text->data[at] != '@' || (at && !is_gap(text->data[at - 1])))
                        continue;
                struct span worker;
                if (!memmem(rest.data, rest.size, " pid=", 5) && !begins_with(rest, "worker ", &worker))
                        break;
                text->size = at ? at - 1 : 0;
                return rest;
        }
        return (struct span){ 0 };
}

bool note_event_next(struct span *events, struct note_event *ret_event)
{
        struct span line;
        struct note_event event = { 0 };
        if (!line_next(events, &line) || !begins_with(line, EVENT, &line) || number_take(&line, &event.at_ms) ||
                !line.size || line.data[0] != ' ')
                return false;
        line.data++;
        line.size--;
        const char *space = memchr(line.data, ' ', line.size);
        event.kind = (struct span){ line.data, space ? (size_t)(space - line.data) : line.size };
        if (space)
                event.text = (struct span){ space + 1, line.size - event.kind.size - 1 };
        event.where = note_take_where(&event.text);
        *ret_event = event;
        return true;
}
