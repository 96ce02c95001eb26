#include "client/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>
#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "client/call.h"
#include "client/room_page.h"

#define FOLLOW_MS (10u * 60u * 1000u) /* how long the doorbell stays armed */
#define AGAIN_MS  200u                /* pause after a failed read */
#define PAGES_MAX 8u                  /* pages that wait for the program; further entries stay in the store */

struct waiting_page {
        struct waiting_page *next;
        struct qv_client_room_page *page;
};

struct qv_client_follow {
        struct qv_client *client;
        char *name;
        uint32_t shard;

        /* Used by the client's thread only. */
        struct qv_client_follow *prev, *next;
        struct store_room_read read;
        uv_timer_t timer;
        uint64_t from;
        bool is_reading;
        bool is_rung; /* the bell rang since the current read was started */
        bool is_closing;

        pthread_mutex_t lock; /* guards what follows */
        pthread_cond_t came;
        struct waiting_page *pages;
        unsigned pages_count;
        bool is_full;   /* reading waits until the program takes a page */
        bool is_over;   /* the handle was closed */
        bool has_ended; /* the client's thread has dropped it */
        int ready_fd;   /* readable while there are pages */
};

/* --- on the client's thread --------------------------------------------------------------------------------------- */

static void read_on(struct qv_client_follow *f);

static void on_timer(uv_timer_t *timer)
{
        read_on(timer->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
        struct qv_client_follow *f = handle->data;
        (void)pthread_mutex_lock(&f->lock);
        f->has_ended = true;
        (void)pthread_cond_broadcast(&f->came);
        (void)pthread_mutex_unlock(&f->lock);
}

static void forget(struct qv_client_follow *f)
{
        DL_DELETE(client_follows(f->client)->first, f);
        uv_close((uv_handle_t *)&f->timer, on_timer_closed);
}

static void deliver(struct qv_client_follow *f, struct qv_client_room_page *page)
{
        struct waiting_page *waiting = memory_zero(1, sizeof(*waiting));
        waiting->page = page;
        (void)pthread_mutex_lock(&f->lock);
        LL_APPEND(f->pages, waiting);
        f->is_full = ++f->pages_count >= PAGES_MAX;
        (void)eventfd_write(f->ready_fd, 1);
        (void)pthread_cond_broadcast(&f->came);
        (void)pthread_mutex_unlock(&f->lock);
}

/* The next number to read.  A room that was made again is read from its beginning. */
static uint64_t next_of(const struct qv_client_follow *f, const struct store_room_read *read)
{
        if (read->entries_count)
                return read->entries[read->entries_count - 1].number + 1;
        if (read->is_gap)
                return read->first;
        return f->from ? f->from : read->first;
}

static void on_read(struct store_request *request)
{
        struct qv_client_follow *f = container_of(request, struct qv_client_follow, read.request);
        const struct store_room_read *read = &f->read;
        f->is_reading = false;
        if (f->is_closing) {
                forget(f);
                return;
        }
        if (request->status == -ECANCELED)
                return;
        if (request->status) {
                /* The store does not answer; the read is repeated until it does. */
                (void)uv_timer_start(&f->timer, on_timer, AGAIN_MS, 0);
                return;
        }
        bool must_go_on = read->has_more || (read->is_gap && !read->entries_count);
        if (read->entries_count || read->is_gap)
                deliver(f, room_page_make(read));
        f->from = next_of(f, read);
        (void)uv_timer_start(&f->timer, on_timer, FOLLOW_MS / 2, 0);
        if (must_go_on || f->is_rung)
                read_on(f);
}

static void read_on(struct qv_client_follow *f)
{
        (void)pthread_mutex_lock(&f->lock);
        bool is_full = f->is_full;
        (void)pthread_mutex_unlock(&f->lock);
        if (f->is_reading || is_full || f->is_closing) {
                f->is_rung = true;
                return;
        }
        f->is_rung = false;
        f->is_reading = true;
        f->read = (struct store_room_read){
                .request.done = on_read, .name = span_of_text(f->name), .from = f->from, .follow_ms = FOLLOW_MS
        };
        store_room_read(client_store(f->client), &f->read);
}

static void on_room(void *self, uint32_t shard)
{
        struct client_follows *follows = self;
        struct qv_client_follow *f;
        for (f = follows->first; f; f = f->next) {
                if (f->shard == shard)
                        read_on(f);
        }
}

static void on_look(void *self)
{
        struct client_follows *follows = self;
        struct qv_client_follow *f;
        for (f = follows->first; f; f = f->next) {
                read_on(f);
        }
}

struct store_bell follows_bell(struct client_follows *follows)
{
        return (struct store_bell){ .room = on_room, .look = on_look, .self = follows };
}

void follows_close(struct client_follows *follows)
{
        struct qv_client_follow *f;
        struct qv_client_follow *next;
        for (f = follows->first; f; f = next) {
                next = f->next;
                f->is_closing = true;
                (void)pthread_mutex_lock(&f->lock);
                f->is_over = true;
                (void)pthread_cond_broadcast(&f->came);
                (void)pthread_mutex_unlock(&f->lock);
                if (!f->is_reading)
                        forget(f);
        }
}

/* --- on the callers' ---------------------------------------------------------------------------------------------- */

/* A step on the client's thread that needs no answer of the store. */
struct follow_step {
        void (*run)(struct qv_client_follow *f);
        struct qv_client_follow *follow;
};

static void start_step(struct qv_client *client, struct client_call *call)
{
        const struct follow_step *step = call->self;
        (void)client;
        step->run(step->follow);
        call->request.status = 0;
        call->request.done(&call->request);
}

static void on_thread(struct qv_client *client, struct qv_client_follow *f, void (*run)(struct qv_client_follow *f))
{
        struct follow_step step = { run, f };
        struct client_call call = { .start = start_step, .self = &step };
        (void)client_call(client, &call, NULL);
}

static void begin(struct qv_client_follow *f)
{
        (void)uv_timer_init(client_loop(f->client), &f->timer);
        f->timer.data = f;
        DL_APPEND(client_follows(f->client)->first, f);
        read_on(f);
}

static void end(struct qv_client_follow *f)
{
        if (f->is_closing)
                return;
        f->is_closing = true;
        if (!f->is_reading)
                forget(f);
}

int qv_client_room_follow(struct qv_client *client, const char *room, uint64_t from, struct qv_client_follow **ret)
{
        struct error *error = client_error_start();
        uint64_t last = 0;
        pthread_condattr_t attributes;
        if (!room || !ret)
                return error_set(error, -EINVAL, "%s: is NULL", room ? "ret_follow" : "room");
        /* Reports an invalid name or a store that does not answer now. */
        int r = client_room_last(client, room, &last, error);
        if (r < 0)
                return r;
        struct qv_client_follow *f = memory_zero(1, sizeof(*f));
        f->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (f->ready_fd < 0) {
                free(f);
                return error_set(error, -EMFILE, "cannot make a descriptor: too many are open");
        }
        f->client = client;
        f->name = text_copy(room);
        f->shard = shard_of_key(span_of_text(room), client_store_info(client)->shards);
        f->from = from == QV_CLIENT_ROOM_NEW ? last + 1 : from;
        (void)pthread_mutex_init(&f->lock, NULL);
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&f->came, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        on_thread(client, f, begin);
        *ret = f;
        return 0;
}

static struct timespec deadline(uint64_t timeout_ms)
{
        struct timespec at;
        uint64_t ms = min_u64(timeout_ms, UINT64_C(365) * 86400000);
        (void)clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_sec += (time_t)(ms / 1000);
        at.tv_nsec += (long)(ms % 1000) * (long)NS_PER_MS;
        if (at.tv_nsec >= (long)NS_PER_S) {
                at.tv_nsec -= (long)NS_PER_S;
                at.tv_sec++;
        }
        return at;
}

int qv_client_follow_next(struct qv_client_follow *f, uint64_t timeout_ms, struct qv_client_room_page **ret_page)
{
        struct error *error = client_error_start();
        struct timespec until = deadline(timeout_ms);
        struct waiting_page *first;
        eventfd_t count;
        (void)pthread_mutex_lock(&f->lock);
        while (!f->pages && !f->is_over && timeout_ms)
                if (pthread_cond_timedwait(&f->came, &f->lock, &until) == ETIMEDOUT)
                        break;
        first = f->pages;
        bool was_full = f->is_full;
        bool is_over = f->is_over;
        if (first) {
                f->pages = first->next;
                f->pages_count--;
                f->is_full = false;
        }
        if (!f->pages)
                (void)eventfd_read(f->ready_fd, &count);
        (void)pthread_mutex_unlock(&f->lock);
        if (!first)
                return error_set(error, is_over ? -ECANCELED : -EAGAIN,
                        is_over ? "the handle was closed" : "nothing was appended to room %s yet", f->name);
        if (was_full && !is_over)
                on_thread(f->client, f, read_on);
        *ret_page = first->page;
        free(first);
        return 0;
}

int qv_client_follow_fd(const struct qv_client_follow *f)
{
        return f->ready_fd;
}

void qv_client_follow_close(struct qv_client_follow *f)
{
        if (!f)
                return;
        (void)pthread_mutex_lock(&f->lock);
        bool is_over = f->is_over;
        (void)pthread_mutex_unlock(&f->lock);
        if (!is_over)
                on_thread(f->client, f, end);
        (void)pthread_mutex_lock(&f->lock);
        while (!f->has_ended)
                (void)pthread_cond_wait(&f->came, &f->lock);
        (void)pthread_mutex_unlock(&f->lock);
        while (f->pages) {
                struct waiting_page *first = f->pages;
                f->pages = first->next;
                qv_client_room_page_free(first->page);
                free(first);
        }
        (void)pthread_cond_destroy(&f->came);
        (void)pthread_mutex_destroy(&f->lock);
        (void)close(f->ready_fd);
        free(f->name);
        free(f);
}
