#include "children.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder_get(void)
{
        const char *folder = getenv("QUIVER_TEST_FOLDER");
        assert_non_null(folder);
        return folder;
}

static void *create(void)
{
        return NULL;
}

static void destroy(void *place)
{
        (void)place;
}

static void options(void *place, struct store_options *to)
{
        static char url[128];
        (void)place;
        (void)snprintf(url, sizeof(url), "sqlite:%s/q.db", folder_get());
        to->url = url;
}

const struct contract_driver sqlite_real = {
        .name = "sqlite", .create = create, .destroy = destroy, .options = options
};

struct ledger *ledger_open(void)
{
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/ledger", folder_get());
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, sizeof(struct ledger)), 0);
        struct ledger *ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(ledger != MAP_FAILED);
        (void)close(fd);
        return ledger;
}

struct ledger *children_setup(char folder[64])
{
        (void)snprintf(folder, 64, "/tmp/quiver-contract-XXXXXX");
        assert_non_null(mkdtemp(folder));
        (void)setenv("QUIVER_TEST_FOLDER", folder, 1);
        return ledger_open();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

void children_cleanup(const char *folder, struct ledger *ledger)
{
        (void)munmap(ledger, sizeof(*ledger));
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

pid_t child_start(const char *role, const char *argument)
{
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void)execl("/proc/self/exe", "child", role, argument, (char *)NULL);
                _exit(127);
        }
        return pid;
}

int child_wait(pid_t pid)
{
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

void world_start(struct world *w, uint8_t who, uint32_t shards)
{
        struct error error = { "" };
        struct store_options o = {
                .shards = shards, .may_create = shards != 0, .is_host = true, .sync = STORE_SYNC_NORMAL
        };
        memset(o.nonce, who, sizeof(o.nonce));
        *w = (struct world){ 0 };
        (void)uv_loop_init(&w->loop);
        if (world_open(w, o, &error))
                fail_msg("%s", error.text);
}

void world_end(struct world *w)
{
        world_close(w);
        (void)uv_run(&w->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&w->loop), 0);
        arena_free(w->memory);
}
