/* Opens the file: checks, the clock, the schema. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_system.h"
#include "base/log.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "store/sqlite/file/checkpoint.h"
#include "store/sqlite/file/schema.h"
#include "store/sqlite/sqlite.h"

/* --- where --- */

static int file_system_check(const char *path, struct error *error)
{
        char folder[4096];
        struct statfs fs;
        (void)snprintf(folder, sizeof(folder), "%s", path);
        char *slash = strrchr(folder, '/');
        if (slash)
                slash[slash == folder] = 0;
        else
                (void)snprintf(folder, sizeof(folder), ".");
        if (statfs(folder, &fs) < 0)
                return error_set(error, -errno, "store folder %s: %s%s", folder, strerror(errno),
                        errno == ENOENT ? "; make it, or change store.url" : "");
        /* On a network file system SQLite corrupts its file: locks and shared memory do not work between machines. */
        const char *network = file_system_network_name((unsigned long)fs.f_type);
        if (network)
                return error_set(error, -ENOTSUP,
                        "%s: on a network file system (%s), where SQLite is not safe; use a local disk, or a redis:// "
                        "store",
                        path, network);
        return 0;
}

/* --- the clock --- */

static uint64_t boot_ms(void *self)
{
        (void)self;
        return clock_boot_ms();
}

static uint64_t wall_ms(void *self)
{
        (void)self;
        return clock_wall_ms();
}

static const char *boot_id(void *self)
{
        static _Thread_local char id[64];
        (void)self;
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (!f || !fgets(id, sizeof(id), f))
                id[0] = 0;
        if (f)
                (void)fclose(f);
        id[strcspn(id, "\n")] = 0;
        return id;
}

static const struct store_clock machine_clock = { boot_ms, wall_ms, boot_id, NULL };

uint64_t sqlite_now(struct sqlite_store *s)
{
        return s->clock.boot_ms(s->clock.self) + s->clock_offset_ms;
}

/* The first opener after a boot sets the clock for all: from the wall clock, but never backwards. */
static void clock_set(struct sqlite_store *s)
{
        struct database *db = &s->db;
        char *known = meta_text(db, "boot_id");
        const char *current = s->clock.boot_id(s->clock.self);
        s->boot = meta_number(db, "boot");
        s->clock_offset_ms = meta_number(db, "clock_offset");
        if (s->boot && !strcmp(known, current)) {
                free(known);
                return;
        }
        free(known);
        struct query q = query(db, STATEMENT_SHARD_LATEST);
        uint64_t latest = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        uint64_t wall = s->clock.wall_ms(s->clock.self);
        s->boot++;
        s->clock_offset_ms = max_u64(wall, latest) - s->clock.boot_ms(s->clock.self);
        meta_set_text(db, "boot_id", current);
        meta_set_number(db, "boot", s->boot);
        meta_set_number(db, "clock_offset", s->clock_offset_ms);
}

/* --- opening --- */

static int failed(struct sqlite_store *s, struct error *error)
{
        if (s->db.failure)
                *error = s->db.error;
        return s->db.failure;
}

static void tune(struct database *db)
{
        database_exec(db, "PRAGMA synchronous = NORMAL");
        database_exec(db, "PRAGMA wal_autocheckpoint = 0");
        /* 96 MiB: more than the log has when it is started again (checkpoint.c), since cutting it off and letting it
         * grow again takes time in which nobody can write. */
        database_exec(db, "PRAGMA journal_size_limit = 100663296");
        database_exec(db, "PRAGMA cache_size = -8192");
        database_exec(db, "PRAGMA temp_store = MEMORY");
}

/* Whether app_record() and clock_set() would write. */
static bool must_write(struct sqlite_store *s, const struct store_options *options)
{
        char *boot = meta_text(&s->db, "boot_id");
        bool is_so = strcmp(boot, s->clock.boot_id(s->clock.self)) != 0 || !meta_number(&s->db, "boot") ||
                     app_must_record(s, options);
        free(boot);
        return is_so;
}

/* Opens a store that is in use without taking the write lock, so that a process that hangs with the lock does not stop
 * readers.  False: something has to be written first. */
static bool setup_reading(
        struct sqlite_store *s, const struct store_options *options, int *ret_status, struct error *error)
{
        struct database *db = &s->db;
        char shm[4200];
        struct stat st;
        unsigned version = 0;
        (void)snprintf(shm, sizeof(shm), "%s-shm", s->path);
        /* Without -shm the file may not be in WAL mode yet, and our read would make the switch to WAL fail for its
         * creator. */
        if (stat(shm, &st) < 0 || schema_version(db, s->path, &version, error) || !schema_is_current(version)) {
                database_clear(db);
                return false;
        }
        tune(db);
        database_exec(db, "BEGIN");
        bool is_enough = !must_write(s, options) && !db->failure;
        if (is_enough) {
                *ret_status = app_record(s, options, false, error);
                clock_set(s);
        }
        database_exec(db, "COMMIT");
        if (!is_enough)
                database_clear(db);
        else if (!*ret_status)
                *ret_status = failed(s, error);
        return is_enough;
}

static int setup(struct sqlite_store *s, const struct store_options *options, bool was_there, struct error *error)
{
        struct database *db = &s->db;
        unsigned version = 0;
        bool is_made = false;
        int r = schema_version(db, s->path, &version, error);
        if (r)
                return r;
        if (!version && !options->may_create)
                return error_set(error, -ENOENT, "%s: an empty file; a host makes the store: quiver run", s->path);
        database_exec(db, "PRAGMA journal_mode = WAL");
        tune(db);
        database_exec(db, "BEGIN IMMEDIATE");
        fair_lock_waited(&s->lock, !db->failure);
        /* Another process may have created it meanwhile. */
        if (!db->failure && !schema_is_current(version)) {
                r = schema_version(db, s->path, &version, error);
                is_made = !r && !version;
                if (is_made && was_there)
                        log_event(LEVEL_WARN, "store-made", "file=%s text=%s", LOG_QUOTE(s->path),
                                LOG_QUOTE("the file was there and empty: it is a new store now; if it should have had "
                                          "tasks, stop the hosts and restore it from a backup"));
                if (!r)
                        schema_migrate(db, version);
        }
        if (!r && !db->failure)
                r = app_record(s, options, is_made, error);
        if (!r && !db->failure) {
                clock_set(s);
                database_exec(db, "COMMIT");
        }
        return r ? r : failed(s, error);
}

static int files_open(struct sqlite_store *s, const struct store_options *options, struct error *error)
{
        char name[4200];
        struct stat st;
        if (!s->path[0])
                return error_set(error, -EINVAL, "store url \"%s\": names no file", options->url);
        int r = stat(s->path, &st) < 0 ? -errno : 0;
        if (!r && access(s->path, R_OK | W_OK) < 0 && errno == EACCES)
                r = -EACCES;
        /* Without access it is unknown whether a store exists; -ENOENT would invite the user to start a second host. */
        if (r == -EACCES)
                return error_set(
                        error, r, "%s: %s; use it as the user of its hosts, or as root", s->path, strerror(-r));
        if (r && !options->may_create)
                return error_set(error, -ENOENT, "%s: no such store; a host makes it: quiver run", s->path);
        r = file_system_check(s->path, error);
        if (r)
                return r;
        (void)snprintf(name, sizeof(name), "%s-turn", s->path);
        r = fair_lock_open(&s->lock, name, error);
        if (r)
                return r;
        s->lock.is_stopping = &s->is_stopping;
        s->lock.is_host = s->is_host;
        s->lock.path = s->path;
        (void)snprintf(name, sizeof(name), "%s-bell", s->path);
        r = doorbells_open(&s->bells, name, error);
        if (r)
                return r;
        r = database_open(&s->db, s->path, options->may_create, error);
        if (!r)
                (void)sqlite3_busy_handler(s->db.handle, fair_lock_busy, &s->lock);
        return r;
}

int sqlite_store_open(struct sqlite_store *s, const struct store_options *options, struct error *error)
{
        s->clock = options->clock ? *options->clock : machine_clock;
        /* Memory statistics cost SQLite a lock per allocation, and a host does not use them.  A client is a guest in
         * another's process and must not change that.  SQLite refuses this once it is in use, which is harmless. */
        if (options->is_host)
                (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        struct stat st;
        bool was_there = stat(s->path, &st) == 0;
        int r = files_open(s, options, error);
        if (!r && !setup_reading(s, options, &r, error)) {
                r = fair_lock_open_alone(&s->lock, error);
                if (!r) {
                        r = setup(s, options, was_there, error);
                        fair_lock_opened(&s->lock);
                }
        }
        if (!r)
                r = same_files_note(&s->same_files, s->path, sqlite3_db_filename(s->db.handle, "main"), error);
        if (!r)
                r = checkpoint_start(s, error);
        s->store.durability = text_copy(
                s->sync == STORE_SYNC_FULL ? "what was acknowledged survives a crash of any process and a power failure"
                                           : "what was acknowledged survives a crash of any process; a power failure "
                                             "may lose the last moments");
        return r;
}

void sqlite_store_shut(struct sqlite_store *s)
{
        checkpoint_stop(s);
        if (s->db.handle)
                database_close(&s->db);
        doorbells_close(&s->bells);
        fair_lock_close(&s->lock);
        shard_table_free(&s->shards);
        log_removals_free(&s->removals);
}
