/* The writer's thread: executes the requests that have gathered in one transaction, commits, and hands them back. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/thread_signals.h"
#include "store/sqlite/file/checkpoint.h"
#include "store/sqlite/sqlite.h"

/* Longest transaction: other processes wait for the lock meanwhile. */
#define TRANSACTION_NS (4 * NS_PER_MS)
/* Longest transaction while a brief request waits for its answer. */
#define HURRIED_NS (NS_PER_MS / 2)
/* An advance with at most this many outcomes is brief: a key's next task may wait for each of them. */
#define BRIEF_OUTCOMES 4u
/* With more brief requests than this none is preferred: with many shards every call has few outcomes, and if all of
 * these went first, in short transactions, claims would starve. */
#define BRIEF_FEW 16u

#define OPERATION(number, function, text, kind) [OP_##number] = { sqlite_##function, kind },
static const struct {
        sqlite_operation *run;
        enum store_kind kind;
} operations[OPS] = { STORE_OPERATIONS(OPERATION) };

static enum store_kind kind_of(const struct store_request *request)
{
        /* A claim without outcomes may be lost: its tasks are then still queued. */
        if (request->op == OP_ADVANCE && !((const struct store_advance *)request)->outcomes_count)
                return STORE_RELAXED;
        if (request->op == OP_REPLY && !reply_must_announce((const struct store_reply *)request))
                return STORE_READ;
        if (request->op == OP_ROOM_READ && !((const struct store_room_read *)request)->follow_ms)
                return STORE_READ;
        if (request->op == OP_FSCK && ((const struct store_fsck *)request)->is_repair)
                return STORE_DURABLE;
        return operations[request->op].kind;
}

void operation_refuse(struct store_request *request, int status, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        (void)vsnprintf(request->error.text, sizeof(request->error.text), format, args);
        va_end(args);
        request->status = status;
}

static void run(struct database *db, enum statement statement)
{
        struct query q = query(db, statement);
        (void)query_run(&q);
}

static void begin(struct sqlite_store *s, enum store_kind kind)
{
        run(&s->db, kind == STORE_READ ? STATEMENT_BEGIN_READ : STATEMENT_BEGIN);
        if (kind != STORE_READ)
                fair_lock_waited(&s->lock, !s->db.failure);
        shard_table_begin(&s->shards, &s->db);
}

static void sync_for(struct sqlite_store *s, enum store_kind kind)
{
        bool is_full = kind == STORE_DURABLE && s->sync == STORE_SYNC_FULL;
        if (is_full != s->is_full_sync)
                database_exec(&s->db, is_full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        s->is_full_sync = is_full;
}

static void roll_back(struct sqlite_store *s)
{
        struct database failed = { .failure = s->db.failure, .error = s->db.error };
        database_clear(&s->db);
        if (!sqlite3_get_autocommit(s->db.handle))
                run(&s->db, STATEMENT_ROLLBACK);
        shard_table_forget(&s->shards);
        ring_clear(&s->bells);
        s->db.failure = failed.failure;
        s->db.error = failed.error;
}

/* --- what comes next --- */

void list_add(struct request_list *list, struct store_request *request)
{
        request->next = NULL;
        if (list->last)
                list->last->next = request;
        else
                list->first = request;
        list->last = request;
}

struct store_request *list_take(struct request_list *list)
{
        struct store_request *request = list->first;
        if (!request)
                return NULL;
        list->first = request->next;
        if (!list->first)
                list->last = NULL;
        request->next = NULL;
        return request;
}

static bool is_brief(const struct store_request *request)
{
        const struct store_advance *advance = (const struct store_advance *)request;
        return request->op == OP_ADVANCE && advance->outcomes_count && advance->outcomes_count <= BRIEF_OUTCOMES;
}

static enum store_kind strongest(const struct request_list *list, enum store_kind kind)
{
        for (const struct store_request *r = list->first; r && kind < STORE_DURABLE; r = r->next)
                if (!r->status && kind_of(r) > kind)
                        kind = kind_of(r);
        return kind;
}

/* How long a transaction may last.  Answers wait for its end, so it ends early if brief requests are in it or wait; but
 * not if every commit costs an fsync. */
static uint64_t limit_ns(const struct sqlite_store *s, bool has_brief)
{
        uint32_t waiting = __atomic_load_n(&s->brief_count, __ATOMIC_RELAXED);
        bool is_hurried = !s->is_full_sync && (has_brief || waiting) && waiting <= BRIEF_FEW;
        return is_hurried ? HURRIED_NS : TRANSACTION_NS;
}

/* --- a transaction --- */

static void remove_done(struct sqlite_store *s)
{
        log_removals_flush(&s->removals, &s->db, s->store.shards);
}

static void execute(struct sqlite_store *s, struct store_request *request, struct request_list *done)
{
        s->now_ms = sqlite_now(s);
        /* Advances do not look at tasks that others of the transaction have ended; all else may. */
        if (request->op != OP_ADVANCE)
                remove_done(s);
        if (!request->status && !s->db.failure)
                operations[request->op].run(s, request);
        list_add(done, request);
}

/* Executes brief requests, then the rest until the time is up but at least one, so that neither starves the other;
 * commits.  Returns the executed requests, in order.  On failure s->db.failure is set and nothing has changed. */
static struct store_request *transact(struct sqlite_store *s, struct request_list *brief, struct request_list *rest)
{
        struct request_list done = { 0 };
        struct store_request *request;
        enum store_kind kind = strongest(rest, strongest(brief, STORE_READ));
        bool has_brief = brief->first;
        sync_for(s, kind);
        begin(s, kind);
        uint64_t start_ns = clock_boot_ns(); /* others wait from here on, not while we waited for the lock */
        while (clock_boot_ns() - start_ns < TRANSACTION_NS && (request = list_take(brief)))
                execute(s, request, &done);
        do
                if ((request = list_take(rest)))
                        execute(s, request, &done);
        while (request && clock_boot_ns() - start_ns < limit_ns(s, has_brief));
        remove_done(s);
        if (kind != STORE_READ)
                shard_table_flush(&s->shards, &s->db);
        run(&s->db, STATEMENT_COMMIT);
        if (s->db.failure)
                roll_back(s);
        else
                doorbells_send(&s->bells);
        return done.first;
}

/* Hands executed requests to the loop. */
static void hand_back(struct sqlite_store *s, struct store_request *done)
{
        (void)pthread_mutex_lock(&s->mutex);
        bool was_empty = !s->finished;
        *s->finished_tail = done;
        while (*s->finished_tail)
                s->finished_tail = &(*s->finished_tail)->next;
        (void)pthread_mutex_unlock(&s->mutex);
        if (was_empty)
                (void)uv_async_send(&s->async);
}

static void fail(struct sqlite_store *s, struct store_request *request)
{
        if (request->status)
                return;
        request->status = s->db.failure;
        (void)error_set(&request->error, 0, "%s: %s", store_op_name(request->op), s->db.error.text);
}

/* Executes requests in a transaction each, so that none fails because of another. */
static void transact_singly(struct sqlite_store *s, struct store_request *group)
{
        while (group) {
                struct store_request *next = group->next;
                struct request_list none = { 0 };
                struct request_list one = { 0 };
                list_add(&one, group);
                database_clear(&s->db);
                (void)transact(s, &none, &one);
                if (s->db.failure)
                        fail(s, group);
                database_clear(&s->db);
                hand_back(s, group);
                group = next;
        }
}

static void work(struct sqlite_store *s)
{
        s->db.failure = same_files_check(&s->same_files, &s->db.error);
        struct store_request *group = transact(s, &s->brief, &s->rest);
        /* If the lock could not be taken, trying again for each request would not help. */
        if (s->db.failure == -EBUSY || s->db.failure == -ESTALE) {
                for (struct store_request *r = group; r; r = r->next)
                        fail(s, r);
                database_clear(&s->db);
                hand_back(s, group);
        } else if (s->db.failure) {
                transact_singly(s, group);
        } else {
                hand_back(s, group);
        }
        checkpoint_consider(s);
        fair_lock_yield(&s->lock);
}

/* Waits for requests; false: the thread has to stop. */
static bool take(struct sqlite_store *s)
{
        struct store_request *request;
        (void)pthread_mutex_lock(&s->mutex);
        while (!s->todo.first && !s->brief.first && !s->rest.first && !s->is_stopping)
                (void)pthread_cond_wait(&s->wake, &s->mutex);
        bool is_few = s->brief_count <= BRIEF_FEW;
        while (!s->is_stopping && (request = list_take(&s->todo)))
                list_add(is_few && is_brief(request) ? &s->brief : &s->rest, request);
        __atomic_store_n(&s->brief_count, 0, __ATOMIC_RELAXED);
        bool is_stopping = s->is_stopping;
        (void)pthread_mutex_unlock(&s->mutex);
        if (is_stopping) {
                hand_back(s, s->brief.first);
                hand_back(s, s->rest.first);
        }
        return !is_stopping;
}

void thread_block_signals(void)
{
        sigset_t all;
        thread_signals_of_others(&all);
        (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
}

void *writer_main(void *store)
{
        struct sqlite_store *s = store;
        struct store_open *open = s->open;
        int r = open->request.status;
        thread_block_signals();
        if (!r)
                r = sqlite_store_open(s, &open->options, &open->request.error);
        open->request.status = r;
        hand_back(s, &open->request);
        while (!r && take(s))
                work(s);
        sqlite_store_shut(s);
        return NULL;
}

void writer_post(struct sqlite_store *s, struct store_request *request)
{
        (void)pthread_mutex_lock(&s->mutex);
        bool was_empty = !s->todo.first;
        list_add(&s->todo, request);
        if (is_brief(request))
                __atomic_store_n(&s->brief_count, s->brief_count + 1, __ATOMIC_RELAXED);
        (void)pthread_mutex_unlock(&s->mutex);
        if (was_empty)
                (void)pthread_cond_signal(&s->wake);
}
