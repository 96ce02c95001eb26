/* Any bytes as a dump: reading never reads outside them and ends; and with marks that fit, so that lines are read, too:
 * what is accepted is in range. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buffer.h"
#include "cli/dump/dump_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

static void demand_in_range(const struct dump_reader *r)
{
        demand(r->lines_count <= DUMP_CHUNK_LINES && r->shards && r->shards <= SHARDS_MAX);
        for (uint32_t i = 0; i < r->lines_count; i++) {
                const struct dump_record *l = &r->lines[i];
                if (l->kind == DUMP_SCHEDULE)
                        demand(dump_schedule_is_fit(&l->schedule) && l->schedule.last_seq == 0);
                if (l->kind == DUMP_NAME)
                        demand(l->shard < r->shards && idempotency_is_fit(&l->remembered));
                if (l->kind == DUMP_ROOM)
                        demand(dump_room_is_fit(&l->room));
                if (l->kind == DUMP_ENTRY)
                        demand(l->entry.number && l->entry.number <= STORE_ROOM_BEGIN_MAX &&
                                l->entry.at_ms <= TASK_NUMBER_MAX && l->name.size && l->name.size <= TASK_KEY_MAX);
                if (l->kind != DUMP_TASK)
                        continue;
                demand(l->shard < r->shards && (unsigned)l->task.lane < LANES && l->task.bytes.size);
                demand(l->task.state == STATE_QUEUED || l->task.state == STATE_DELAYED || l->task.state == STATE_DEAD);
                demand(l->task.due_in_ms <= TASK_NUMBER_MAX && l->task.at_ms <= TASK_NUMBER_MAX);
                demand(l->task.id.size <= TASK_ID_MAX && l->task.handler.size <= TASK_HANDLER_MAX);
        }
}

static void read_all(const void *data, size_t size)
{
        struct dump_reader *r = calloc(1, sizeof(*r));
        demand(r);
        r->in = fmemopen((void *)(uintptr_t)data, size, "r");
        demand(r->in);
        int result = dump_read_head(r);
        while (result == 0 && !r->is_end) {
                result = dump_read_chunk(r);
                if (result == 0)
                        demand_in_range(r);
        }
        demand(result == 0 || r->error.text[0]);
        (void)fclose(r->in);
        dump_reader_free(r);
        free(r);
}

static void put_line(struct buffer *b, const void *line, size_t size)
{
        buffer_put(b, line, size);
        buffer_put(b, "\n", 1);
}

/* The input's lines as one chunk of a dump. */
static void read_framed(const uint8_t *data, size_t size)
{
        static const char head[] = "{\"quiver\":\"dump\",\"version\":2,\"name\":\"00112233445566778899aabbccddeeff\","
                                   "\"app\":\"a\",\"shards\":3}";
        struct buffer b = { 0 };
        char mark[DUMP_MARK_MAX];
        uint32_t lines = 1;
        put_line(&b, head, sizeof(head) - 1);
        for (size_t i = 0; i < size; i++)
                lines += data[i] == '\n';
        put_line(&b, data, size);
        uint32_t sum = (uint32_t)crc32_z(0, b.data, b.size);
        put_line(&b, mark, dump_chunk_mark(mark, 1, lines, sum));
        sum = (uint32_t)crc32_z(0, b.data, b.size);
        put_line(&b, mark, dump_end_mark(mark, 1, lines, sum));
        read_all(b.data, b.size);
        buffer_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!size)
                return 0;
        read_all(data, size);
        read_framed(data, size);
        return 0;
}
