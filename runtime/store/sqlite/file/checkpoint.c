#include "store/sqlite/file/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "base/memory.h"

/* In frames of 4 KiB.  A page that is written often is copied once per checkpoint, so waiting saves work. */
#define FRAME_SIZE  4096
#define FRAMES_FEW  1024  /* no checkpoint below this */
#define FRAMES_DUE  16384 /* 64 MiB */
#define FRAMES_MANY 32768 /* no host keeps up: the writer does it itself and waits */

/* SQLite starts the log again from its beginning when a transaction finds all of it copied.  Beside writers that never
 * pause, a copy is never complete.  So the thread copies most of it, and the writer copies the rest while it holds the
 * write lock, which takes a millisecond or two. */
enum checkpoint_state {
        CHECKPOINT_IDLE,
        CHECKPOINT_COPYING, /* the thread has the connection */
        CHECKPOINT_COPIED,  /* only what was written meanwhile is left */
};

struct checkpointer {
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        enum checkpoint_state state; /* under the mutex */
        bool is_stopping;            /* under the mutex */
        struct database db;          /* used by the thread while it copies, otherwise by the writer */
};

static int on_commit(void *store, sqlite3 *handle, const char *name, int frames)
{
        (void)handle;
        (void)name;
        struct sqlite_store *s = store;
        s->wal_frames = frames;
        if (frames < s->wal_tried) /* the log was started again */
                s->wal_tried = 0;
        return SQLITE_OK;
}

static void checkpoint(struct database *db)
{
        int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        if (code != SQLITE_OK && code != SQLITE_BUSY)
                log_event(LEVEL_WARN, "checkpoint", "error=%s", LOG_QUOTE(sqlite3_errstr(code)));
}

static void *checkpoint_main(void *data)
{
        struct checkpointer *c = data;
        thread_block_signals();
        (void)pthread_mutex_lock(&c->mutex);
        while (!c->is_stopping) {
                if (c->state != CHECKPOINT_COPYING) {
                        (void)pthread_cond_wait(&c->wake, &c->mutex);
                        continue;
                }
                (void)pthread_mutex_unlock(&c->mutex);
                checkpoint(&c->db);
                /* The first time takes long enough for many more frames. */
                checkpoint(&c->db);
                (void)pthread_mutex_lock(&c->mutex);
                c->state = CHECKPOINT_COPIED;
        }
        (void)pthread_mutex_unlock(&c->mutex);
        return NULL;
}

/* A connection that has read nothing does not know about the log: its checkpoints would succeed and do nothing. */
static int connect_reading(struct database *db, const char *path, struct error *error)
{
        int r = database_open(db, path, false, error);
        if (r)
                return r;
        database_exec(db, "SELECT count(*) FROM sqlite_schema");
        r = db->failure;
        if (r) {
                *error = db->error;
                database_close(db);
        }
        return r;
}

int checkpoint_start(struct sqlite_store *s, struct error *error)
{
        (void)sqlite3_wal_hook(s->db.handle, on_commit, s);
        if (!s->is_host)
                return 0;
        struct checkpointer *c = memory_zero(1, sizeof(*c));
        int r = connect_reading(&c->db, s->path, error);
        if (r) {
                free(c);
                return r;
        }
        (void)pthread_mutex_init(&c->mutex, NULL);
        (void)pthread_cond_init(&c->wake, NULL);
        r = -pthread_create(&c->thread, NULL, checkpoint_main, c);
        if (r) {
                database_close(&c->db);
                free(c);
                return error_set(error, r, "%s: cannot start the checkpoint thread: %s", s->path, strerror(-r));
        }
        s->checkpointer = c;
        return 0;
}

void checkpoint_stop(struct sqlite_store *s)
{
        struct checkpointer *c = s->checkpointer;
        if (!c)
                return;
        (void)pthread_mutex_lock(&c->mutex);
        c->is_stopping = true;
        (void)pthread_mutex_unlock(&c->mutex);
        (void)pthread_cond_signal(&c->wake);
        (void)pthread_join(c->thread, NULL);
        database_close(&c->db);
        (void)pthread_cond_destroy(&c->wake);
        (void)pthread_mutex_destroy(&c->mutex);
        free(c);
        s->checkpointer = NULL;
}

/* Whether the disk would be full before a checkpoint is due.  Then the log must be copied while the database can still
 * grow. */
static bool is_disk_tight(const struct sqlite_store *s)
{
        struct statfs disk;
        return statfs(s->path, &disk) == 0 &&
               (uint64_t)disk.f_bavail * (uint64_t)disk.f_bsize < (uint64_t)s->wal_frames * FRAME_SIZE;
}

/* A reader of an older state may keep the log from being copied completely, and then from being started again: the next
 * attempt waits until there is more to copy. */
static bool is_due(const struct sqlite_store *s)
{
        if (s->wal_frames < s->wal_tried + FRAMES_FEW)
                return false;
        return s->wal_frames >= FRAMES_DUE || is_disk_tight(s);
}

/* Copies the rest of the log while nobody can write. */
static void finish(struct sqlite_store *s)
{
        database_exec(&s->db, "BEGIN IMMEDIATE");
        fair_lock_waited(&s->lock, !s->db.failure);
        if (!s->db.failure)
                checkpoint(&s->checkpointer->db);
        database_exec(&s->db, "COMMIT");
        database_clear(&s->db);
        s->wal_tried = s->wal_frames;
}

/* Has the thread begin if it is due, or finishes what the thread has copied. */
static void go_on(struct sqlite_store *s)
{
        struct checkpointer *c = s->checkpointer;
        (void)pthread_mutex_lock(&c->mutex);
        bool is_copied = c->state == CHECKPOINT_COPIED;
        if (is_copied)
                c->state = CHECKPOINT_IDLE;
        else if (c->state == CHECKPOINT_IDLE && is_due(s))
                c->state = CHECKPOINT_COPYING;
        (void)pthread_mutex_unlock(&c->mutex);
        if (is_copied)
                finish(s);
        else
                (void)pthread_cond_signal(&c->wake);
}

void checkpoint_consider(struct sqlite_store *s)
{
        if (s->wal_frames < FRAMES_FEW)
                return;
        if (s->checkpointer)
                go_on(s);
        if (s->wal_frames >= FRAMES_MANY && is_due(s)) {
                checkpoint(&s->db);
                s->wal_tried = s->wal_frames;
        }
}
