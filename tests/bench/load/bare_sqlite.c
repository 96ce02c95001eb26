#include "bare_sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load.h"

#define BATCH       100u
#define BATCH_BYTES (1u << 20)
#define BESIDES     85u /* bytes of a queued task besides its payload: id, key, handler */

struct bare {
        sqlite3 *db;
        sqlite3_stmt *insert;
        sqlite3_stmt *read;
        sqlite3_stmt *delete;
        char *row;
        int row_size;
        unsigned batch;
};

static void exec(sqlite3 *db, const char *sql)
{
        if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
                load_die(sql, sqlite3_errmsg(db));
}

static sqlite3_stmt *statement(sqlite3 *db, const char *sql)
{
        sqlite3_stmt *s;
        if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
                load_die(sql, sqlite3_errmsg(db));
        return s;
}

static void run(const struct bare *bare, sqlite3_stmt *s)
{
        int r = sqlite3_step(s);
        if (r != SQLITE_DONE)
                load_die("SQLite", sqlite3_errmsg(bare->db));
        (void)sqlite3_reset(s);
}

static void open_bare(struct bare *bare, const char *path, bool is_full, unsigned payload_bytes)
{
        unsigned most = payload_bytes ? BATCH_BYTES / payload_bytes : BATCH;
        if (sqlite3_open(path, &bare->db) != SQLITE_OK)
                load_die(path, "cannot open");
        exec(bare->db, "PRAGMA journal_mode = WAL");
        exec(bare->db, is_full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        exec(bare->db, "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, task BLOB)");
        bare->insert = statement(bare->db, "INSERT INTO t(task) VALUES(?1)");
        bare->read = statement(bare->db, "SELECT id, task FROM t ORDER BY id LIMIT ?1");
        bare->delete = statement(bare->db, "DELETE FROM t WHERE id = ?1");
        bare->row_size = (int)(payload_bytes + BESIDES);
        bare->row = calloc(1, (size_t)bare->row_size);
        bare->batch = most > BATCH ? BATCH : most ? most : 1;
        if (!bare->row)
                load_die("row", "out of memory");
        (void)sqlite3_bind_blob(bare->insert, 1, bare->row, bare->row_size, SQLITE_STATIC);
        (void)sqlite3_bind_int64(bare->read, 1, bare->batch);
}

static void close_bare(struct bare *bare)
{
        (void)sqlite3_finalize(bare->insert);
        (void)sqlite3_finalize(bare->read);
        (void)sqlite3_finalize(bare->delete);
        (void)sqlite3_close(bare->db);
        free(bare->row);
}

static void insert_batch(const struct bare *bare, unsigned count)
{
        exec(bare->db, "BEGIN IMMEDIATE");
        for (unsigned i = 0; i < count; i++)
                run(bare, bare->insert);
        exec(bare->db, "COMMIT");
}

/* Returns how many there were. */
static unsigned take_batch(const struct bare *bare)
{
        sqlite3_int64 ids[BATCH];
        unsigned count = 0;
        exec(bare->db, "BEGIN IMMEDIATE");
        while (sqlite3_step(bare->read) == SQLITE_ROW) {
                memcpy(bare->row, sqlite3_column_blob(bare->read, 1), (size_t)bare->row_size);
                ids[count++] = sqlite3_column_int64(bare->read, 0);
        }
        (void)sqlite3_reset(bare->read);
        for (unsigned i = 0; i < count; i++) {
                (void)sqlite3_bind_int64(bare->delete, 1, ids[i]);
                run(bare, bare->delete);
        }
        exec(bare->db, "COMMIT");
        return count;
}

void bare_sqlite(const char *path, bool is_full, unsigned count, unsigned payload_bytes, double *ret_insert_s,
        double *ret_take_s)
{
        struct bare bare;
        open_bare(&bare, path, is_full, payload_bytes);
        uint64_t start_ns = clock_boot_ns();
        for (unsigned left = count, n; left; left -= n) {
                n = left < bare.batch ? left : bare.batch;
                insert_batch(&bare, n);
        }
        *ret_insert_s = load_seconds_since(start_ns);
        start_ns = clock_boot_ns();
        while (take_batch(&bare))
                ;
        *ret_take_s = load_seconds_since(start_ns);
        close_bare(&bare);
}

void bare_sqlite_commits(const char *path, bool is_full, const struct load *load)
{
        struct bare bare;
        uint64_t start_ns = clock_boot_ns();
        open_bare(&bare, path, is_full, load->payload_bytes);
        for (unsigned done = 0; done < load->tasks; done++) {
                (void)load_due(load, done, start_ns);
                uint64_t insert_ns = clock_boot_ns();
                run(&bare, bare.insert);
                (void)printf("%.6f\n", load_seconds_since(insert_ns) * 1000);
        }
        close_bare(&bare);
}
