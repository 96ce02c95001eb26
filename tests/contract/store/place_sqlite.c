/* The contract suite's SQLite places: a folder in the temporary directory, with a clock that only the test moves. */
#include <dirent.h>
#include <sqlite3.h>
#include <unistd.h>

#include "harness.h"

struct place {
        char folder[64];
        char url[96];
        uint64_t boot_ms;
        uint64_t wall_ms;
        unsigned boots;
        char boot_id[32];
        struct store_clock clock;
};

/* The writer's thread reads what the test's thread sets. */
static uint64_t boot_ms(void *self)
{
        return __atomic_load_n(&((struct place *)self)->boot_ms, __ATOMIC_ACQUIRE);
}

static uint64_t wall_ms(void *self)
{
        return __atomic_load_n(&((struct place *)self)->wall_ms, __ATOMIC_ACQUIRE);
}

static const char *boot_id(void *self)
{
        return ((struct place *)self)->boot_id;
}

static void *create(void)
{
        struct place *p = calloc(1, sizeof(*p));
        assert_non_null(p);
        (void)snprintf(p->folder, sizeof(p->folder), "/tmp/quiver-contract-XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        (void)snprintf(p->url, sizeof(p->url), "sqlite:%s/q.db", p->folder);
        p->boot_ms = 5000000;
        p->wall_ms = 1763256000000;
        (void)snprintf(p->boot_id, sizeof(p->boot_id), "boot-0");
        p->clock = (struct store_clock){ boot_ms, wall_ms, boot_id, p };
        return p;
}

static void remove_tree(const char *folder)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
                char path[512];
                if (entry->d_name[0] == '.')
                        continue;
                (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
                if (entry->d_type == DT_DIR)
                        remove_tree(path);
                else
                        (void)unlink(path);
        }
        if (dir)
                (void)closedir(dir);
        (void)rmdir(folder);
}

static void destroy(void *self)
{
        struct place *p = self;
        remove_tree(p->folder);
        free(p);
}

static void options(void *self, struct store_options *to)
{
        struct place *p = self;
        to->url = p->url;
        to->clock = &p->clock;
}

static void step_clock(void *self, int64_t ms)
{
        struct place *p = self;
        (void)__atomic_add_fetch(&p->boot_ms, (uint64_t)ms, __ATOMIC_ACQ_REL);
        (void)__atomic_add_fetch(&p->wall_ms, (uint64_t)ms, __ATOMIC_ACQ_REL);
}

static void reboot(void *self)
{
        struct place *p = self;
        p->boot_ms = 1000;
        (void)snprintf(p->boot_id, sizeof(p->boot_id), "boot-%u", ++p->boots);
}

/* Another program that knows the schema writes past the driver. */
static void push(void *self, uint32_t shard, enum lane lane, struct span bytes)
{
        struct place *p = self;
        sqlite3 *db;
        sqlite3_stmt *insert;
        char sql[1024];
        const char *name = lane_name(lane);
        assert_int_equal(sqlite3_open(strchr(p->url, ':') + 1, &db), SQLITE_OK);
        (void)sqlite3_busy_timeout(db, 5000);
        assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        /* A segment of its own, so that it need not know which numbers were given (store/README.md). */
        (void)snprintf(sql, sizeof(sql),
                "INSERT INTO meta VALUES('position', 1 << 16) ON CONFLICT DO UPDATE SET value = ((value >> 16) + 1) << "
                "16;"
                "UPDATE shard SET %s_tail = (SELECT (value >> 16) << 10 FROM meta WHERE name = 'position'),"
                " %s_queued = %s_queued + 1, submitted = submitted + 1 WHERE shard = %u",
                name, name, name, shard);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        (void)snprintf(sql, sizeof(sql),
                "INSERT INTO log(id, task) SELECT (%d << 60) | ((value >> 16) << 22) | (%u << 10), ?1 FROM meta WHERE "
                "name = 'position'",
                (int)lane ^ 1, shard);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &insert, NULL), SQLITE_OK);
        (void)sqlite3_bind_blob(insert, 1, bytes.data, (int)bytes.size, SQLITE_STATIC);
        assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
        (void)sqlite3_finalize(insert);
        assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        (void)sqlite3_close(db);
}

static void record(void *self, const char *name, const char *value)
{
        struct place *p = self;
        sqlite3 *db;
        char sql[256];
        assert_int_equal(sqlite3_open(strchr(p->url, ':') + 1, &db), SQLITE_OK);
        (void)snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta VALUES('%s', '%s')", name, value);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        (void)sqlite3_close(db);
}

const struct contract_driver sqlite_contract = {
        .name = "sqlite",
        .create = create,
        .destroy = destroy,
        .options = options,
        .step_clock = step_clock,
        .reboot = reboot,
        .push = push,
        .record = record,
};
