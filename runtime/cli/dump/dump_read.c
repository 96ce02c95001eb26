/* dump_read.c: a dump, chunk by chunk.  It comes from a file that anybody may have touched: every line is checked, and
 * nothing of a chunk is handed out before its mark has said that all of it is as it was written. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "cli/dump/dump_format.h"
#include "view/json.h"

static struct span span_of(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

__attribute__((format(printf, 2, 3))) static int wrong(struct dump_reader *r, const char *format, ...)
{
        char text[ERROR_TEXT_MAX / 2];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return error_set(&r->error, -EINVAL, "line %" PRIu64 ": %s", r->line, text);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void text_add(struct dump_reader *r, char c)
{
        if (r->text_size == r->text_room) {
                r->text_room = r->text_room ? 2 * r->text_room : 4096;
                r->text = memory_resize(r->text, r->text_room);
        }
        r->text[r->text_size++] = c;
}

static int cut(struct dump_reader *r)
{
        return error_set(&r->error, -EINVAL,
                "it is cut off after line %" PRIu64 ", in chunk %" PRIu64 ", and has no end mark; only %" PRIu64
                " chunks are whole",
                r->line, r->chunk + 1, r->chunk);
}

/* The next line, without its newline, in r->text. */
static int line_read(struct dump_reader *r)
{
        int c;
        r->text_size = 0;
        while ((c = getc_unlocked(r->in)) != EOF && c != '\n') {
                if (r->text_size == DUMP_LINE_MAX) {
                        r->line++;
                        return wrong(r, "longer than any task can be");
                }
                text_add(r, (char)c);
        }
        if (c == EOF && ferror(r->in))
                return error_set(&r->error, -EIO, "line %" PRIu64 ": %s", r->line + 1, strerror(errno));
        if (c == EOF)
                return cut(r);
        r->line++;
        return 0;
}

/* Adds the line to the sum of what was read. */
static void line_sum(struct dump_reader *r)
{
        r->sum = (uint32_t)crc32_z(r->sum, (const Bytef *)r->text, r->text_size);
        r->sum = (uint32_t)crc32_z(r->sum, (const Bytef *)"\n", 1);
}

static json_t *line_parse(struct dump_reader *r)
{
        json_t *o = json_loadb(r->text, r->text_size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(o))
                return o;
        json_decref(o);
        (void)wrong(r, "not a JSON object: the dump was changed");
        return NULL;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* A number from 0 to `max`; one that is not there is 0. */
static bool number_get(const json_t *o, const char *name, uint64_t max, uint64_t *ret_number)
{
        const json_t *value = json_object_get(o, name);
        json_int_t number = json_integer_value(value);
        if ((value && !json_is_integer(value)) || number < 0 || (uint64_t)number > max)
                return false;
        *ret_number = (uint64_t)number;
        return true;
}

/* The value of NAME, or of NAME_base64; -ENOENT if neither is there, -EINVAL if it cannot be read. */
static int bytes_get(const json_t *o, const char *name, struct buffer *to)
{
        char coded[64];
        const json_t *value = json_object_get(o, name);
        buffer_clear(to);
        if (json_is_string(value)) {
                buffer_put(to, json_string_value(value), json_string_length(value));
                return 0;
        }
        (void)snprintf(coded, sizeof(coded), "%s_base64", name);
        const json_t *in_base64 = json_object_get(o, coded);
        if (!json_is_string(in_base64))
                return value || in_base64 ? -EINVAL : -ENOENT;
        return view_base64_decode(json_string_value(in_base64), json_string_length(in_base64), to);
}

/* As a word: letters that can be seen, at most `max`. */
static bool word_is_fit(struct span word, size_t max)
{
        bool is_fit = word.size && word.size <= max;
        for (size_t i = 0; i < word.size && is_fit; i++)
                is_fit = (unsigned char)word.data[i] >= ' ' && word.data[i] != 0x7f;
        return is_fit;
}

bool dump_desired_is_fit(const struct store_desired *item)
{
        return word_is_fit(item->name, 255) && item->value.size <= STORE_DESIRED_VALUE_MAX &&
               (!item->value.size || !memchr(item->value.data, 0, item->value.size));
}

bool dump_schedule_is_fit(const struct store_schedule *schedule)
{
        bool has_next = schedule->next_ms != STORE_NEVER;
        return !task_handler_check(schedule->name, NULL) && schedule->name.size <= STORE_SCHEDULE_NAME_MAX &&
               schedule->state <= SCHEDULE_PAUSED && schedule->version && schedule->version <= TASK_NUMBER_MAX &&
               (!has_next ||
                       (schedule->next_ms && schedule->next_ms <= TASK_NUMBER_MAX && schedule->next_ms % 1000 == 0)) &&
               schedule->last_ms <= TASK_NUMBER_MAX && schedule->fired <= TASK_NUMBER_MAX &&
               schedule->skipped <= TASK_NUMBER_MAX && schedule->definition.size <= STORE_SCHEDULE_DEFINITION;
}

bool dump_room_is_fit(const struct store_room *room)
{
        return !task_key_check(room->name, NULL) && room->first && room->first <= STORE_ROOM_BEGIN_MAX &&
               room->entries_max && room->entries_max <= STORE_ROOM_ENTRIES_MAX && room->bytes_max &&
               room->bytes_max <= STORE_ROOM_BYTES_MAX && room->age_ms && room->age_ms <= TASK_NUMBER_MAX / 2;
}

static bool state_get(const json_t *o, enum store_state *ret_state)
{
        static const struct {
                const char *name;
                enum store_state state;
        } states[] = { { "queued", STATE_QUEUED }, { "delayed", STATE_DELAYED }, { "dead", STATE_DEAD } };
        const char *name = json_string_value(json_object_get(o, "state"));
        for (unsigned i = 0; name && i < sizeof(states) / sizeof(states[0]); i++)
                if (!strcmp(name, states[i].name)) {
                        *ret_state = states[i].state;
                        return true;
                }
        return false;
}

/* --- one line of a chunk ------------------------------------------------------------------------------------------ */

static int dead_read(struct dump_reader *r, const json_t *o, struct dump_record *l)
{
        struct buffer *m = l->memory;
        if (bytes_get(o, "id", &m[2]) || bytes_get(o, "handler", &m[3]) || bytes_get(o, "reason", &m[4]))
                return wrong(r, "a dead task has an id, a handler and a reason");
        l->task.id = span_of(&m[2]);
        l->task.handler = span_of(&m[3]);
        l->task.reason = span_of(&m[4]);
        if (!word_is_fit(l->task.id, TASK_ID_MAX) || !word_is_fit(l->task.handler, TASK_HANDLER_MAX))
                return wrong(
                        r, "a dead task's id has 1 to %u letters, its handler 1 to %u", TASK_ID_MAX, TASK_HANDLER_MAX);
        if (l->task.reason.size && !word_is_fit(l->task.reason, NOTE_TEXT_MAX))
                return wrong(r, "a dead task's reason has at most %u letters", NOTE_TEXT_MAX);
        return 0;
}

static int task_read(struct dump_reader *r, const json_t *o, struct dump_record *l)
{
        struct buffer *m = l->memory;
        struct task_note note;
        uint64_t shard = 0;
        const char *lane = json_string_value(json_object_get(o, "lane"));
        l->task = (struct store_moved){ 0 };
        if (!state_get(o, &l->task.state))
                return wrong(r, "a task's state is queued, delayed or dead");
        if (!lane || !lane_parse((struct span){ lane, strlen(lane) }, &l->task.lane))
                return wrong(r, "a task's lane is high, normal or low");
        if (bytes_get(o, "envelope", &m[0]) || !m[0].size)
                return wrong(r, "a task has an envelope, as text or in base64");
        if (bytes_get(o, "note", &m[1]) == -EINVAL || note_parse(m[1].data, m[1].size, &note))
                return wrong(r, "the note cannot be read");
        if (!number_get(o, "shard", r->shards - 1, &shard))
                return wrong(r, "a task's shard is a number below %" PRIu32, r->shards);
        if (!number_get(o, "due_in_ms", TASK_NUMBER_MAX / 2, &l->task.due_in_ms) ||
                !number_get(o, "at_ms", TASK_NUMBER_MAX / 2, &l->task.at_ms))
                return wrong(r, "a time is out of range");
        l->shard = (uint32_t)shard;
        l->task.bytes = span_of(&m[0]);
        l->task.note = span_of(&m[1]);
        return l->task.state == STATE_DEAD ? dead_read(r, o, l) : 0;
}

static int pair_read(struct dump_reader *r, const json_t *o, const char *name, const char *value, struct dump_record *l)
{
        if (bytes_get(o, name, &l->memory[0]) || bytes_get(o, value, &l->memory[1]) == -EINVAL)
                return wrong(r, "%s and %s are texts", name, value);
        l->name = span_of(&l->memory[0]);
        l->value = span_of(&l->memory[1]);
        if (l->kind == DUMP_HELD && task_key_check(l->name, NULL))
                return wrong(r, "the held key is not one: a key has 1 to 255 bytes and no control characters");
        if (l->kind == DUMP_DESIRED && !dump_desired_is_fit(&(struct store_desired){ l->name, l->value }))
                return wrong(r, "a desired state has a name of 1 to 255 letters, and a value of at most %u bytes",
                        STORE_DESIRED_VALUE_MAX);
        return 0;
}

static int name_read(struct dump_reader *r, const json_t *o, struct dump_record *l)
{
        struct buffer *m = l->memory;
        struct store_remembered *record = &l->remembered;
        const char *digest = json_string_value(json_object_get(o, "digest"));
        uint8_t bytes[SHA256_SIZE] = { 0 };
        uint64_t shard = 0;
        *record = (struct store_remembered){ 0 };
        if (bytes_get(o, "idempotency", &m[0]) || bytes_get(o, "key", &m[1]) == -EINVAL || bytes_get(o, "id", &m[2]))
                return wrong(r, "an idempotency key has a name, and the key and the id of a task");
        if (!number_get(o, "shard", r->shards - 1, &shard) ||
                !number_get(o, "left_ms", TASK_NUMBER_MAX / 2, &record->left_ms))
                return wrong(r, "a number of the idempotency key is out of range");
        if (!digest || !units_hex_read(digest, strlen(digest), bytes, SHA256_SIZE))
                return wrong(r, "an idempotency key's digest has %u hexadecimal digits", 2 * SHA256_SIZE);
        if (task_key_check(span_of(&m[0]), NULL) || (m[1].size && task_key_check(span_of(&m[1]), NULL)))
                return wrong(r, "the idempotency key or its task's key is none: 1 to 255 bytes, no control characters");
        buffer_clear(&m[4]);
        buffer_put(&m[4], bytes, sizeof(bytes));
        buffer_clear(&m[3]);
        buffer_printf(&m[3], "%.*s\n%.*s", (int)m[0].size, (const char *)m[0].data, (int)m[1].size,
                m[1].size ? (const char *)m[1].data : "");
        l->shard = (uint32_t)shard;
        l->name = span_of(&m[0]);
        l->value = span_of(&m[1]);
        record->scope = span_of(&m[3]);
        record->id = span_of(&m[2]);
        record->digest = span_of(&m[4]);
        return idempotency_is_fit(record) ? 0
                                          : wrong(r, "an idempotency key has a task's id and some time that is left");
}

static int schedule_read(struct dump_reader *r, const json_t *o, struct dump_record *l)
{
        struct store_schedule *s = &l->schedule;
        const json_t *is_paused = json_object_get(o, "is_paused");
        *s = (struct store_schedule){ .state = json_is_true(is_paused) ? SCHEDULE_PAUSED : SCHEDULE_ACTIVE };
        if (bytes_get(o, "schedule", &l->memory[0]) || bytes_get(o, "definition", &l->memory[1]))
                return wrong(r, "a schedule has a name and a definition");
        if (is_paused && !json_is_boolean(is_paused))
                return wrong(r, "a schedule's is_paused is true or false");
        if (!number_get(o, "version", TASK_NUMBER_MAX, &s->version) ||
                !number_get(o, "next_ms", TASK_NUMBER_MAX, &s->next_ms) ||
                !number_get(o, "last_ms", TASK_NUMBER_MAX, &s->last_ms) ||
                !number_get(o, "fired", TASK_NUMBER_MAX, &s->fired) ||
                !number_get(o, "skipped", TASK_NUMBER_MAX, &s->skipped))
                return wrong(r, "a number of the schedule is out of range");
        if (!json_object_get(o, "next_ms"))
                s->next_ms = STORE_NEVER;
        s->name = span_of(&l->memory[0]);
        s->definition = span_of(&l->memory[1]);
        if (!dump_schedule_is_fit(s))
                return wrong(r,
                        "a schedule has a name of 1 to %u letters, digits, _ or -, a version from 1, a next time in "
                        "whole seconds, and a definition of at most %u bytes",
                        STORE_SCHEDULE_NAME_MAX, STORE_SCHEDULE_DEFINITION);
        return 0;
}

static int room_read(struct dump_reader *r, const json_t *o, struct dump_record *l)
{
        struct store_room *room = &l->room;
        *room = (struct store_room){ 0 };
        if (bytes_get(o, "room", &l->memory[0]) || !number_get(o, "first", STORE_ROOM_BEGIN_MAX, &room->first) ||
                !number_get(o, "entries_max", STORE_ROOM_ENTRIES_MAX, &room->entries_max) ||
                !number_get(o, "bytes_max", STORE_ROOM_BYTES_MAX, &room->bytes_max) ||
                !number_get(o, "age_ms", TASK_NUMBER_MAX / 2, &room->age_ms))
                return wrong(r, "a number of the room is out of range");
        room->name = span_of(&l->memory[0]);
        if (!dump_room_is_fit(room))
                return wrong(r, "a room has a name of 1 to 255 bytes, a first number, and what it keeps: from 1");
        return 0;
}

static int entry_read(struct dump_reader *r, const json_t *o, struct dump_record *l)
{
        struct store_room_entry *entry = &l->entry;
        *entry = (struct store_room_entry){ 0 };
        if (bytes_get(o, "entry", &l->memory[0]) || bytes_get(o, "bytes", &l->memory[1]))
                return wrong(r, "an entry has its room's name, and bytes");
        if (!number_get(o, "number", STORE_ROOM_BEGIN_MAX, &entry->number) || !entry->number ||
                !number_get(o, "at_ms", TASK_NUMBER_MAX, &entry->at_ms))
                return wrong(r, "a number of the entry is out of range");
        l->name = span_of(&l->memory[0]);
        entry->bytes = span_of(&l->memory[1]);
        if (task_key_check(l->name, NULL))
                return wrong(r, "a room's name has 1 to 255 bytes and no control characters");
        return 0;
}

/* What this Quiver does not know, a newer one may have written. */
static int unknown_read(struct dump_reader *r, const json_t *o)
{
        const char *kind = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)o));
        return wrong(r,
                "a line that begins with \"%.40s\" is neither a task nor anything else that this Quiver loads; load it "
                "with the Quiver that wrote it, or a newer one",
                kind ? kind : "");
}

static int item_read(struct dump_reader *r, const json_t *o)
{
        if (r->lines_count == DUMP_CHUNK_LINES)
                return wrong(r, "chunk %" PRIu64 " has more than %u lines", r->chunk + 1, DUMP_CHUNK_LINES);
        if (r->chunk_bytes >= DUMP_CHUNK_BYTES)
                return wrong(
                        r, "chunk %" PRIu64 " has more than %u bytes before this line", r->chunk + 1, DUMP_CHUNK_BYTES);
        r->chunk_bytes += r->text_size;
        struct dump_record *l = &r->lines[r->lines_count++];
        if (json_object_get(o, "state")) {
                l->kind = DUMP_TASK;
                r->tasks++;
                return task_read(r, o, l);
        }
        if (json_object_get(o, "held") || json_object_get(o, "held_base64")) {
                l->kind = DUMP_HELD;
                return pair_read(r, o, "held", "reason", l);
        }
        if (json_object_get(o, "desired")) {
                l->kind = DUMP_DESIRED;
                return pair_read(r, o, "desired", "value", l);
        }
        if (json_object_get(o, "idempotency") || json_object_get(o, "idempotency_base64")) {
                l->kind = DUMP_NAME;
                return name_read(r, o, l);
        }
        if (json_object_get(o, "schedule")) {
                l->kind = DUMP_SCHEDULE;
                return schedule_read(r, o, l);
        }
        if (json_object_get(o, "room") || json_object_get(o, "room_base64")) {
                l->kind = DUMP_ROOM;
                return room_read(r, o, l);
        }
        if (json_object_get(o, "entry") || json_object_get(o, "entry_base64")) {
                l->kind = DUMP_ENTRY;
                return entry_read(r, o, l);
        }
        return unknown_read(r, o);
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

size_t dump_chunk_mark(char text[DUMP_MARK_MAX], uint64_t number, uint32_t lines, uint32_t sum)
{
        return (size_t)snprintf(text, DUMP_MARK_MAX,
                "{\"chunk\":%" PRIu64 ",\"lines\":%" PRIu32 ",\"sum\":\"%08" PRIx32 "\"}", number, lines, sum);
}

size_t dump_end_mark(char text[DUMP_MARK_MAX], uint64_t chunks, uint64_t tasks, uint32_t sum)
{
        return (size_t)snprintf(text, DUMP_MARK_MAX,
                "{\"end\":true,\"chunks\":%" PRIu64 ",\"tasks\":%" PRIu64 ",\"sum\":\"%08" PRIx32 "\"}", chunks, tasks,
                sum);
}

/* A mark is compared with the one that belongs there, byte by byte. */
static int mark_check(struct dump_reader *r, const json_t *o, const char *text, size_t size)
{
        char sum[16];
        const char *written = json_string_value(json_object_get(o, "sum"));
        if (r->text_size == size && !memcmp(r->text, text, size))
                return 0;
        (void)snprintf(sum, sizeof(sum), "%08" PRIx32, r->sum);
        if (!written || strcmp(written, sum) != 0)
                return wrong(r,
                        "the checksum is %s and should be %s: the dump was changed in chunk %" PRIu64 " (the %" PRIu32
                        " lines before this one)",
                        sum, written ? written : "there", r->chunk + 1, r->lines_count);
        return wrong(r, "this mark should be %.*s: lines are missing, doubled or in another order", (int)size, text);
}

static int end_read(struct dump_reader *r, const json_t *o)
{
        char text[DUMP_MARK_MAX];
        if (r->lines_count)
                return wrong(r, "chunk %" PRIu64 " has no mark of its own", r->chunk + 1);
        int result = mark_check(r, o, text, dump_end_mark(text, r->chunk, r->tasks, r->sum));
        if (result == 0 && getc_unlocked(r->in) != EOF)
                return wrong(r, "something follows the end mark");
        r->is_end = result == 0;
        return result;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

int dump_read_head(struct dump_reader *r)
{
        uint64_t version = 0;
        uint64_t shards = 0;
        int result = line_read(r);
        if (result == -EINVAL && !r->line && !r->text_size)
                return error_set(&r->error, -EINVAL, "there is nothing to load");
        json_t *o = result ? NULL : line_parse(r);
        if (!o)
                return result ? result : -EINVAL;
        const char *what = json_string_value(json_object_get(o, "quiver"));
        const char *name = json_string_value(json_object_get(o, "name"));
        if (!what || strcmp(what, "dump") != 0 || !number_get(o, "version", UINT32_MAX, &version))
                result = wrong(r, "this was not written by quiver dump");
        else if (version != DUMP_VERSION)
                result = wrong(r, "dump format %" PRIu64 ", and this Quiver reads format %d; %s", version, DUMP_VERSION,
                        version < DUMP_VERSION ? "write it anew with this Quiver's dump"
                                               : "load it with the Quiver that wrote it, or a newer one");
        else if (!name || strlen(name) != DUMP_NAME_SIZE || strspn(name, "0123456789abcdef") != DUMP_NAME_SIZE)
                result = wrong(r, "the dump has no name of %u hexadecimal digits", DUMP_NAME_SIZE);
        else if (!number_get(o, "shards", SHARDS_MAX, &shards) || !shards)
                result = wrong(r, "shards is a number from 1 to %u", SHARDS_MAX);
        else
                memcpy(r->name, name, DUMP_NAME_SIZE + 1);
        r->shards = (uint32_t)shards;
        json_decref(o);
        line_sum(r);
        return result;
}

int dump_read_chunk(struct dump_reader *r)
{
        r->lines_count = 0;
        r->chunk_bytes = 0;
        for (bool is_over = false; !is_over;) {
                char text[DUMP_MARK_MAX];
                int result = line_read(r);
                json_t *o = result ? NULL : line_parse(r);
                if (!o)
                        return result ? result : -EINVAL;
                if (json_object_get(o, "chunk")) {
                        result = mark_check(r, o, text, dump_chunk_mark(text, r->chunk + 1, r->lines_count, r->sum));
                        r->chunk += result == 0;
                        is_over = true;
                } else if (json_object_get(o, "end")) {
                        result = end_read(r, o);
                        is_over = true;
                } else {
                        result = item_read(r, o);
                }
                json_decref(o);
                if (result)
                        return result;
                line_sum(r);
        }
        return 0;
}

void dump_reader_free(struct dump_reader *r)
{
        for (unsigned i = 0; i < DUMP_CHUNK_LINES; i++)
                for (unsigned j = 0; j < 5; j++)
                        buffer_free(&r->lines[i].memory[j]);
        free(r->text);
}
