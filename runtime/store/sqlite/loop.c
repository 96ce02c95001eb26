/* The loop's side: hands requests to the writer's thread and takes them back; opens and closes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "store/sqlite/sqlite.h"
#include "task/packed.h"

/* Advances under way at once.  A transaction writes the pages of every shard in it, so fewer and fuller calls are
 * cheaper; but many share one commit. */
#define CALLS_FEW 64u
/* With many shards a call brings only a few tasks, each in a page that has to be written.  Tasks of neighbouring shards
 * share pages, and shards call in order of their numbers: so a quarter of them at once writes half as many pages. */
#define CALLS_PART 4u

static void free_store(struct sqlite_store *s)
{
        free(s->store.app);
        free(s->store.coordination);
        free(s->store.durability);
        free(s->path);
        (void)pthread_cond_destroy(&s->wake);
        (void)pthread_mutex_destroy(&s->mutex);
        free(s);
}

/* The last handle is closed and the thread has ended: cancels the open requests and reports the end. */
static void on_handle_closed(uv_handle_t *handle)
{
        struct sqlite_store *s = handle->data;
        if (--s->open_handles)
                return;
        struct store_open *open = s->open;
        void (*closed)(void *self) = s->closed;
        void *self = s->closed_self;
        requests_cancel(s->finished);
        requests_cancel(s->todo.first);
        requests_cancel(s->waiting);
        free_store(s);
        if (open)
                request_finish(&open->request, open->request.status);
        else if (closed)
                closed(self);
}

static void close_handle(struct sqlite_store *s, uv_handle_t *handle)
{
        handle->data = s;
        s->open_handles++;
        uv_close(handle, on_handle_closed);
}

static void stop(struct sqlite_store *s)
{
        (void)pthread_mutex_lock(&s->mutex);
        __atomic_store_n(&s->is_stopping, true, __ATOMIC_RELAXED);
        (void)pthread_mutex_unlock(&s->mutex);
        (void)pthread_cond_signal(&s->wake);
        bool has_bell = s->bell.fd >= 0;
        bell_close(&s->bell);
        (void)pthread_join(s->thread, NULL);
        if (has_bell)
                close_handle(s, (uv_handle_t *)&s->bell.poll);
        close_handle(s, (uv_handle_t *)&s->reply_timer);
        close_handle(s, (uv_handle_t *)&s->async);
}

static struct store_request *take_finished(struct sqlite_store *s)
{
        (void)pthread_mutex_lock(&s->mutex);
        struct store_request *list = s->finished;
        s->finished = NULL;
        s->finished_tail = &s->finished;
        (void)pthread_mutex_unlock(&s->mutex);
        return list;
}

static void opened(struct sqlite_store *s)
{
        struct store_open *open = s->open;
        const struct store_options *options = &open->options;
        static const uint8_t nobody[STORE_NONCE_SIZE];
        bool has_name = memcmp(options->nonce, nobody, STORE_NONCE_SIZE) != 0;
        if (options->bell)
                s->bell.listener = *options->bell;
        if (!open->request.status && options->bell && has_name)
                open->request.status =
                        bell_open(&s->bell, s->loop, s->bells.dir_fd, s->nonce, options->bell, &open->request.error);
        if (open->request.status) {
                stop(s); /* done() is called once everything is closed */
                return;
        }
        s->store.calls_max = (uint32_t)max_u64(CALLS_FEW, s->store.shards / CALLS_PART);
        s->open = NULL;
        open->store = &s->store;
        request_finish(&open->request, 0);
}

static void release_loop(struct sqlite_store *s)
{
        if (!--s->outstanding)
                uv_unref((uv_handle_t *)&s->async);
}

static void on_async(uv_async_t *async)
{
        struct sqlite_store *s = async->data;
        struct store_request *list = take_finished(s);
        while (list) {
                struct store_request *request = list;
                list = list->next;
                if (request->op == OP_OPEN) {
                        release_loop(s);
                        opened(s);
                        return; /* no other request can be under way */
                }
                if (request->op == OP_REPLY && reply_keep_waiting(s, (struct store_reply *)request))
                        continue;
                release_loop(s);
                request_finish(request, request->status);
                if (s->is_closing) {
                        /* done() has closed the store: closing cancels the rest. */
                        *s->finished_tail = list;
                        return;
                }
        }
}

static void on_reply_bell(void *self)
{
        reply_rang(self);
}

static void sqlite_open(uv_loop_t *loop, struct store_open *open)
{
        const struct store_options *options = &open->options;
        struct sqlite_store *s = memory_zero(1, sizeof(*s));
        s->store.driver = &sqlite_driver;
        store_set_limits(&s->store, options);
        s->loop = loop;
        const char *path = strchr(options->url, ':');
        s->path = text_copy(path ? path + 1 : "");
        memcpy(s->nonce, options->nonce, STORE_NONCE_SIZE);
        static const uint8_t nobody[STORE_NONCE_SIZE];
        if (!memcmp(s->nonce, nobody, STORE_NONCE_SIZE) &&
                getrandom(s->nonce, STORE_NONCE_SIZE, 0) != (ssize_t)STORE_NONCE_SIZE)
                abort();
        s->sync = options->sync;
        s->is_host = options->is_host;
        s->open = open;
        s->finished_tail = &s->finished;
        s->bell = (struct bell){ .fd = -1, .reply = on_reply_bell, .reply_self = s };
        s->lock.fd = -1;
        s->bells = (struct doorbells){ .dir_fd = -1, .send_fd = -1 };
        (void)pthread_mutex_init(&s->mutex, NULL);
        (void)pthread_cond_init(&s->wake, NULL);
        (void)uv_async_init(loop, &s->async, on_async);
        s->async.data = s;
        (void)uv_timer_init(loop, &s->reply_timer);
        s->reply_timer.data = s;
        s->outstanding = 1;
        if (pthread_create(&s->thread, NULL, writer_main, s) != 0)
                abort();
}

static void sqlite_start(struct store *store, struct store_request *request)
{
        struct sqlite_store *s = (struct sqlite_store *)store;
        if (request->op == OP_REPLY) {
                struct store_reply *reply = (struct store_reply *)request;
                reply->deadline_ms = uv_now(s->loop) + reply->wait_ms;
                if (reply->wait_ms && s->bell.fd < 0)
                        (void)bell_open(&s->bell, s->loop, s->bells.dir_fd, s->nonce, NULL, NULL);
        }
        /* A process without a nonce starts to listen when it first follows a room. */
        if (request->op == OP_ROOM_READ && ((struct store_room_read *)request)->follow_ms && s->bell.fd < 0 &&
                !request->status)
                request->status = bell_open(&s->bell, s->loop, s->bells.dir_fd, s->nonce, NULL, &request->error);
        if (!s->outstanding++)
                uv_ref((uv_handle_t *)&s->async);
        writer_post(s, request);
}

static void sqlite_close(struct store *store, void (*closed)(void *self), void *self)
{
        struct sqlite_store *s = (struct sqlite_store *)store;
        s->is_closing = true;
        s->closed = closed;
        s->closed_self = self;
        stop(s);
}

const struct store_driver sqlite_driver = {
        .scheme = "sqlite",
        .open = sqlite_open,
        .start = sqlite_start,
        .close = sqlite_close,
        .put_head = packed_put_head,
};
