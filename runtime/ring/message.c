#include "ring/message.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

static void put_list(struct buffer *to, const char *const *texts, size_t count)
{
        buffer_put_u32(to, (uint32_t)count);
        for (size_t i = 0; i < count; i++)
                buffer_put_text(to, texts[i]);
}

void message_put_start(struct buffer *to, const struct runner_start *start)
{
        buffer_put_u32(to, MESSAGE_START);
        buffer_put_text(to, start->handler);
        buffer_put_text(to, start->plugin);
        buffer_put_text(to, start->label);
        buffer_put_u32(to, start->seats);
        buffer_put_u32(to, start->batch_max);
        buffer_put_u32(to, start->leases);
        buffer_put_u32(to, start->log_level);
        buffer_put_u32(to, start->log_rate);
        buffer_put_u64(to, start->result_max);
        buffer_put_u64(to, start->payload_max);
        buffer_put_u32(to, start->can_call);
        buffer_put_u64(to, start->memory_max);
        buffer_put_u64(to, start->cpu_seconds_max);
        buffer_put_u64(to, start->files_max);
        buffer_put_u64(to, start->processes_max);
        buffer_put_u64(to, start->core_max);
        buffer_put_u32(to, start->cores_millis);
        buffer_put_u32(to, start->has_no_network);
        buffer_put_u32(to, start->has_controllers);
        buffer_put_text(to, start->cgroup ? start->cgroup : "");
        buffer_put_text(to, start->user);
        put_list(to, start->paths_read, start->paths_read_count);
        put_list(to, start->paths_write, start->paths_write_count);
        buffer_put_u32(to, (uint32_t)start->settings_count);
        for (size_t i = 0; i < start->settings_count; i++) {
                buffer_put_text(to, start->settings[i].name);
                buffer_put_text(to, start->settings[i].value);
        }
        buffer_put_u32(to, start->rehearsals);
}

void message_put_ready(struct buffer *to, const struct runner_ready *ready)
{
        buffer_put_u32(to, MESSAGE_READY);
        buffer_put_text(to, ready->name);
        buffer_put_text(to, ready->version);
        buffer_put_u32(to, ready->flags);
        buffer_put_u32(to, ready->has_many);
        buffer_put_text(to, ready->unread);
        buffer_put_text(to, ready->notes);
        buffer_put_u32(to, ready->rehearsal.count);
        buffer_put_u64(to, ready->rehearsal.bytes);
        buffer_put_u64(to, ready->rehearsal.descriptors);
        buffer_put_u64(to, ready->rehearsal.threads);
        buffer_put_u64(to, ready->rehearsal.constructor_bytes);
        buffer_put_u32(to, ready->rehearsal.constructor_threads);
}

void message_put_refused(struct buffer *to, const char *text)
{
        buffer_put_u32(to, MESSAGE_REFUSED);
        buffer_put_text(to, text);
}

void message_put_level(struct buffer *to, uint32_t level)
{
        buffer_put_u32(to, MESSAGE_LEVEL);
        buffer_put_u32(to, level);
}

void message_put_log(struct buffer *to, const struct runner_log *log)
{
        buffer_put_u32(to, MESSAGE_LOG);
        buffer_put_u32(to, log->level);
        buffer_put_u32(to, log->source);
        buffer_put_u32(to, log->seat);
        buffer_put_u64(to, log->ticket);
        buffer_put_u32(to, log->dropped);
        buffer_put_text(to, log->text);
}

int message_open(struct reader *r, const void *data, size_t size, enum message_kind *ret_kind)
{
        reader_init(r, data, size);
        uint32_t kind = reader_u32(r);
        if (r->is_bad || kind < MESSAGE_START || kind > MESSAGE_LEVEL)
                return -EBADMSG;
        *ret_kind = (enum message_kind)kind;
        return 0;
}

/* Reads a count and refuses one that the rest of the message cannot hold: each element takes at least its length and a
 * NUL. */
static size_t get_count(struct reader *r)
{
        size_t count = reader_u32(r);
        if (count > r->size / 5)
                r->is_bad = true;
        return r->is_bad ? 0 : count;
}

static const char **get_list(struct reader *r, size_t *ret_count)
{
        size_t count = get_count(r);
        const char **texts = memory_zero(count + 1, sizeof(*texts));
        for (size_t i = 0; i < count; i++)
                texts[i] = reader_text(r);
        *ret_count = count;
        return texts;
}

int message_get_start(struct reader *r, struct runner_start *ret)
{
        struct runner_start s = { 0 };
        s.handler = reader_text(r);
        s.plugin = reader_text(r);
        s.label = reader_text(r);
        s.seats = reader_u32(r);
        s.batch_max = reader_u32(r);
        s.leases = reader_u32(r);
        s.log_level = reader_u32(r);
        s.log_rate = reader_u32(r);
        s.result_max = reader_u64(r);
        s.payload_max = reader_u64(r);
        s.can_call = reader_u32(r);
        s.memory_max = reader_u64(r);
        s.cpu_seconds_max = reader_u64(r);
        s.files_max = reader_u64(r);
        s.processes_max = reader_u64(r);
        s.core_max = reader_u64(r);
        s.cores_millis = reader_u32(r);
        s.has_no_network = reader_u32(r);
        s.has_controllers = reader_u32(r);
        s.cgroup = reader_text(r);
        s.user = reader_text(r);
        s.paths_read = get_list(r, &s.paths_read_count);
        s.paths_write = get_list(r, &s.paths_write_count);
        size_t count = get_count(r);
        struct setting *settings = memory_zero(count + 1, sizeof(*settings));
        for (size_t i = 0; i < count; i++) {
                settings[i].name = reader_text(r);
                settings[i].value = reader_text(r);
        }
        s.settings = settings;
        s.settings_count = count;
        s.rehearsals = reader_u32(r);
        if (r->is_bad || r->size) {
                message_free_start(&s);
                return -EBADMSG;
        }
        *ret = s;
        return 0;
}

void message_free_start(struct runner_start *start)
{
        free((void *)start->paths_read);
        free((void *)start->paths_write);
        free((void *)start->settings);
        *start = (struct runner_start){ 0 };
}

int message_get_ready(struct reader *r, struct runner_ready *ret)
{
        struct runner_ready ready = { 0 };
        ready.name = reader_text(r);
        ready.version = reader_text(r);
        ready.flags = reader_u32(r);
        ready.has_many = reader_u32(r) != 0;
        ready.unread = reader_text(r);
        ready.notes = reader_text(r);
        ready.rehearsal.count = reader_u32(r);
        ready.rehearsal.bytes = reader_u64(r);
        ready.rehearsal.descriptors = reader_u64(r);
        ready.rehearsal.threads = reader_u64(r);
        ready.rehearsal.constructor_bytes = reader_u64(r);
        ready.rehearsal.constructor_threads = reader_u32(r);
        if (r->is_bad || r->size)
                return -EBADMSG;
        *ret = ready;
        return 0;
}

int message_get_level(struct reader *r, uint32_t *ret_level)
{
        uint32_t level = reader_u32(r);
        if (r->is_bad || r->size)
                return -EBADMSG;
        *ret_level = level;
        return 0;
}

int message_get_refused(struct reader *r, const char **ret_text)
{
        const char *text = reader_text(r);
        if (r->is_bad || r->size)
                return -EBADMSG;
        *ret_text = text;
        return 0;
}

int message_get_log(struct reader *r, struct runner_log *ret)
{
        struct runner_log log = { 0 };
        log.level = reader_u32(r);
        log.source = reader_u32(r);
        log.seat = reader_u32(r);
        log.ticket = reader_u64(r);
        log.dropped = reader_u32(r);
        log.text = reader_text(r);
        if (r->is_bad || r->size)
                return -EBADMSG;
        *ret = log;
        return 0;
}
