#include "runner/services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/followup.h"

/* How long to wait for the host: a lock needs an answer of the coordination tree. */
#define ASK_TIMEOUT_MS 5000
#define ID_BLOCK_MS    100 /* maximum age of a block of ids */

static struct seat *seat_of(const struct qv_host *host)
{
        return (struct seat *)host;
}

/* --- any thread -------------------------------------------------------------------------------------------------- */

static void service_log(const struct qv_host *host, int32_t level, const char *text)
{
        struct seat *s = seat_of(host);
        uint64_t ticket = atomic_load_explicit(&s->shown->ticket, memory_order_relaxed);
        logger_line(&s->runner->logger, level, s->number, ticket, text);
}

static const char *service_config(const struct qv_host *host, const char *name)
{
        return name ? settings_get(&seat_of(host)->runner->settings, name) : NULL;
}

static const void *service_ext(const struct qv_host *host, const char *name)
{
        (void)host;
        (void)name;
        return NULL;
}

/* --- the seat's thread ---- */

/* Logs once that the plugin calls services from a thread that is not a seat's: otherwise only -EINVAL shows it. */
static bool is_on_seat(struct seat *s, const char *name)
{
        if (seat_is_mine(s))
                return true;
        if (!atomic_exchange(&s->runner->is_thread_told, true)) {
                char text[160];
                (void)snprintf(text, sizeof(text),
                        "%s was called on another thread than its seat's; it returns -EINVAL. Only log works on any "
                        "thread",
                        name);
                service_log(&s->host, LEVEL_ERROR, text);
        }
        return false;
}

/* The seat's record of the task; NULL: the service must not be called now, or not on this thread. */
static struct seat_task *work_of(const struct qv_host *host, const struct qv_task *task, const char *name)
{
        struct seat *s = seat_of(host);
        return is_on_seat(s, name) ? seat_find_work(s, task) : NULL;
}

/* --- staged with the task ---------------------------------------------------------------------------------------- */

static int32_t service_error(const struct qv_host *host, const struct qv_task *task, const char *text)
{
        struct seat *s = seat_of(host);
        if (!text || !is_on_seat(s, "error"))
                return -EINVAL;
        if (!task) {
                logger_clean(s->init_error, sizeof(s->init_error), text);
                return 0;
        }
        struct seat_task *w = seat_find_work(s, task);
        if (!w)
                return -EINVAL;
        seat_task_set_error(w, text);
        return 0;
}

static int32_t service_result(const struct qv_host *host, const struct qv_task *task, const void *data, size_t size)
{
        struct seat *s = seat_of(host);
        struct seat_task *w = work_of(host, task, "result");
        if (!w || (size && !data))
                return -EINVAL;
        if (size > s->runner->start.result_max ||
                seat_task_size(w) - w->result.size + size > s->runner->ring.map.shape.answer_bytes_max)
                return -EMSGSIZE;
        buffer_clear(&w->result);
        buffer_put(&w->result, data, size);
        w->has_result = true;
        return 0;
}

static int32_t service_submit(const struct qv_host *host, const struct qv_task *task, const struct qv_submit *submit)
{
        struct seat *s = seat_of(host);
        struct seat_task *w = work_of(host, task, "submit");
        struct error error;
        if (!w || !submit)
                return -EINVAL;
        int r = followup_stage(
                w, submit, s->runner->start.payload_max, s->runner->ring.map.shape.answer_bytes_max, &error);
        if (r < 0) {
                (void)error_prefix(&error, r, "submit");
                service_log(host, LEVEL_ERROR, error.text);
        }
        return r;
}

static int32_t service_retry_after(const struct qv_host *host, const struct qv_task *task, uint64_t delay_ms)
{
        struct seat_task *w = work_of(host, task, "retry_after");
        if (!w)
                return -EINVAL;
        w->has_retry_after = true;
        w->retry_after_ms = delay_ms;
        return 0;
}

static int32_t service_progress(const struct qv_host *host, const struct qv_task *task, uint64_t done, uint64_t total)
{
        struct seat *s = seat_of(host);
        if (!work_of(host, task, "progress"))
                return -EINVAL;
        atomic_store_explicit(&s->shown->progress_done, done, memory_order_relaxed);
        atomic_store_explicit(&s->shown->progress_total, total, memory_order_relaxed);
        atomic_store_explicit(&s->shown->progressed_ns, clock_boot_ns(), memory_order_release);
        return 0;
}

/* A checkpoint is kept twice: in the seat's shared memory, where the host finds it after a crash, and with the answer,
 * because the seat has room for one and a batch may make several. */
static int32_t service_checkpoint(const struct qv_host *host, const struct qv_task *task, const void *data, size_t size)
{
        struct seat *s = seat_of(host);
        struct seat_task *w = work_of(host, task, "checkpoint");
        if (!w || (size && !data))
                return -EINVAL;
        if (size > QV_CHECKPOINT_MAX)
                return -EMSGSIZE;
        buffer_clear(&w->checkpoint);
        buffer_put(&w->checkpoint, data, size);
        w->has_checkpoint = true;
        ring_checkpoint(&s->runner->ring, s->number, w->ticket, data, size);
        return 0;
}

/* --- services of the host ---------------------------------------------------------------------------------------- */

static bool can_call(struct seat *s, enum ring_service service, const char *name)
{
        uint32_t bit = UINT32_C(1) << service;
        if (s->runner->start.can_call & bit)
                return true;
        if (!(atomic_fetch_or(&s->runner->services_missed, bit) & bit)) {
                char text[128];
                (void)snprintf(text, sizeof(text), "%s is not supported by this host; it returns -ENOTSUP", name);
                service_log(&s->host, LEVEL_WARN, text);
        }
        return false;
}

static int32_t ask(
        const struct qv_host *host, const char *service_name, struct ring_question question, uint64_t ret_numbers[2])
{
        struct seat *s = seat_of(host);
        if (!is_on_seat(s, service_name))
                return -EINVAL;
        if (!can_call(s, question.service, service_name))
                return -ENOTSUP;
        question.ticket = s->ticket;
        return ring_ask(&s->runner->ring, s->number, &question, ASK_TIMEOUT_MS, ret_numbers);
}

static int32_t service_trylock(const struct qv_host *host, const char *name, uint64_t ttl_ms, uint64_t *ret_token)
{
        uint64_t numbers[2];
        if (!name || !*name || !ttl_ms || ttl_ms > QV_LOCK_TTL_MAX_MS || !ret_token)
                return -EINVAL;
        if (strlen(name) > QV_LOCK_NAME_MAX)
                return -EMSGSIZE;
        const struct ring_question question = { .service = SERVICE_TRYLOCK, .name = name, .number = ttl_ms };
        int32_t r = ask(host, "trylock", question, numbers);
        if (r == 0)
                *ret_token = numbers[0];
        return r;
}

static int32_t service_unlock(const struct qv_host *host, const char *name, uint64_t token)
{
        uint64_t numbers[2];
        if (!name || !*name)
                return -EINVAL;
        if (strlen(name) > QV_LOCK_NAME_MAX)
                return -EMSGSIZE;
        return ask(host, "unlock", (struct ring_question){ .service = SERVICE_UNLOCK, .name = name, .number = token },
                numbers);
}

/* Takes an id from the block that all seats share.  A block that is too old is dropped, so that the time in an id is
 * near the time of the call. */
static bool take_cached_id(struct runner_id_block *block, uint64_t now_ms, uint64_t *ret_id)
{
        bool is_there = block->left && now_ms - block->since_ms <= ID_BLOCK_MS;
        if (!is_there)
                return false;
        *ret_id = block->next;
        block->next += block->step;
        block->left--;
        return true;
}

/* Keeps the block unless another seat got a newer one meanwhile: ids must grow within the process. */
static void keep_block(struct runner_id_block *block, const uint64_t numbers[2], uint64_t now_ms)
{
        if (numbers[0] < block->next)
                return;
        *block = (struct runner_id_block){ .next = numbers[0],
                .step = RING_IDS_STEP(numbers[1]),
                .left = RING_IDS_COUNT(numbers[1]),
                .since_ms = now_ms };
}

static int32_t service_next_id(const struct qv_host *host, uint64_t *ret_id)
{
        struct seat *s = seat_of(host);
        struct runner_id_block *block = &s->runner->ids;
        uint64_t numbers[2];
        bool is_given = false;
        if (!ret_id || !is_on_seat(s, "next_id"))
                return -EINVAL;
        while (!is_given) {
                (void)pthread_mutex_lock(&s->runner->ids_lock);
                is_given = take_cached_id(block, clock_boot_ms(), ret_id);
                (void)pthread_mutex_unlock(&s->runner->ids_lock);
                if (is_given)
                        break;
                const struct ring_question question = {
                        .service = SERVICE_NEXT_ID, .name = "", .number = RING_IDS_MAX
                };
                uint64_t asked_ms = clock_boot_ms();
                int32_t r = ask(host, "next_id", question, numbers);
                if (r < 0)
                        return r;
                (void)pthread_mutex_lock(&s->runner->ids_lock);
                keep_block(block, numbers, asked_ms);
                /* Takes an id at once even if the block is already old: a slow process must not ask for ever. */
                is_given = block->left;
                if (is_given)
                        (void)take_cached_id(block, block->since_ms, ret_id);
                (void)pthread_mutex_unlock(&s->runner->ids_lock);
        }
        return 0;
}

static int32_t service_room_append(
        const struct qv_host *host, const char *room, const void *data, size_t size, uint64_t *ret_number)
{
        uint64_t numbers[2];
        if (!room || !*room || strlen(room) > RING_CALL_NAME_MAX || (size && !data) || !ret_number)
                return -EINVAL;
        if (size > QV_ROOM_ENTRY_MAX)
                return -EMSGSIZE;
        const struct ring_question question = {
                .service = SERVICE_ROOM_APPEND, .name = room, .data = data, .size = size
        };
        int32_t r = ask(host, "room_append", question, numbers);
        if (r == 0)
                *ret_number = numbers[0];
        return r;
}

void services_fill(struct seat *s)
{
        s->host = (struct qv_host){
                .size = sizeof(s->host),
                .seat = s->number,
                .handler = s->runner->start.handler,
                .log = service_log,
                .config = service_config,
                .error = service_error,
                .result = service_result,
                .submit = service_submit,
                .retry_after = service_retry_after,
                .progress = service_progress,
                .checkpoint = service_checkpoint,
                .trylock = service_trylock,
                .unlock = service_unlock,
                .next_id = service_next_id,
                .ext = service_ext,
                .room_append = service_room_append,
        };
}
