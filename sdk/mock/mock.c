/* mock.c: the instance, its settings, and what a test may do to it. */
#include <time.h>

#include "internal.h"

/* A table may come from an older or a newer header: what it lacks is zero, what it has beyond ours is ignored. */
static void check_table(const struct qv_plugin *plugin, struct qv_plugin *ret)
{
        if (!plugin)
                qv_mock_wrong("there is no plugin table");
        if (plugin->size < offsetof(struct qv_plugin, close))
                qv_mock_wrong("quiver_plugin.size is %u: too small to hold a handler", plugin->size);
        if (plugin->abi_major != QV_ABI_MAJOR)
                qv_mock_wrong("quiver_plugin.abi_major is %u, this mock speaks %u", plugin->abi_major, QV_ABI_MAJOR);
        *ret = (struct qv_plugin){ 0 };
        memcpy(ret, plugin, plugin->size < sizeof(*ret) ? plugin->size : sizeof(*ret));
        const char *problem = ret->name ? qv_mock_check_handler(ret->name) : "is NULL";
        if (problem)
                qv_mock_wrong("quiver_plugin.name %s", problem);
        if (!ret->handle)
                qv_mock_wrong("quiver_plugin.handle is NULL");
}

struct qv_mock *qv_mock_new(const struct qv_plugin *plugin)
{
        struct qv_mock *mock = calloc(1, sizeof(*mock));
        struct timespec now;
        if (!mock)
                qv_mock_wrong("out of memory");
        check_table(plugin, &mock->plugin);
        mock->first = mock;
        (void)pthread_mutex_init(&mock->shared_lock, NULL);
        (void)pthread_mutex_init(&mock->log_lock, NULL);
        /* Like the real thing: a handler may subtract its own reading of the clock from task->deadline_ns. */
        (void)clock_gettime(CLOCK_BOOTTIME, &now);
        mock->now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
        mock->deadline_ms = UINT64_MAX;
        mock->fence_epoch = 1;
        return mock;
}

void qv_mock_free(struct qv_mock *mock)
{
        if (!mock)
                return;
        if (mock->seat)
                qv_mock_close(mock);
        if (mock->loader && mock->plugin.unload)
                mock->plugin.unload();
        qv_mock_drop(&mock->kept);
        qv_mock_drop(&mock->shared_kept);
        qv_mock_drop(&mock->log_blocks);
        free(mock->logs);
        (void)pthread_mutex_destroy(&mock->shared_lock);
        (void)pthread_mutex_destroy(&mock->log_lock);
        free(mock);
}

void qv_mock_config(struct qv_mock *mock, const char *name, const char *value)
{
        if (mock->seat)
                qv_mock_wrong("setting %s comes too late: settings are fixed once init was called", name);
        struct setting **at = &mock->settings;
        while (*at && strcmp((*at)->name, name) != 0)
                at = &(*at)->next;
        if (!*at) {
                *at = qv_mock_keep(&mock->kept, sizeof(**at));
                (*at)->name = qv_mock_keep_text(&mock->kept, name);
        }
        (*at)->value = qv_mock_keep_text(&mock->kept, value);
}

void qv_mock_end_instance(struct qv_mock *mock)
{
        qv_mock_drop(&mock->loans);
        mock->seat = NULL;
        mock->self = NULL;
        for (struct setting *setting = mock->settings; setting; setting = setting->next)
                setting->lent = NULL;
}

static struct seat *make_seat(struct qv_mock *mock, struct block **list)
{
        struct seat *seat = qv_mock_keep(list, sizeof(*seat));
        seat->mock = mock;
        seat->host.size = sizeof(seat->host);
        seat->host.handler = qv_mock_keep_text(list, mock->plugin.name);
        qv_mock_fill_services(&seat->host);
        return seat;
}

int32_t qv_mock_load(struct qv_mock *mock)
{
        if (mock->first != mock || mock->loader || !mock->plugin.load)
                return 0; /* for other seats of the process the first has done it */
        struct seat *loader = make_seat(mock, &mock->kept);
        int32_t r = mock->plugin.load(&loader->host);
        if (r == 0)
                mock->loader = loader;
        return r;
}

int32_t qv_mock_init(struct qv_mock *mock)
{
        if (mock->seat)
                qv_mock_wrong("init was called already; call qv_mock_close() first");
        struct seat *seat = make_seat(mock, &mock->loans);
        for (struct setting *setting = mock->settings; setting; setting = setting->next) {
                setting->lent = qv_mock_keep_text(&mock->loans, setting->value);
                setting->is_read = false;
        }
        mock->seat = seat;
        mock->thread = pthread_self();
        mock->init_error = NULL;
        mock->is_in_init = true;
        int32_t r = qv_mock_load(mock);
        if (r == 0 && mock->plugin.init)
                r = mock->plugin.init(&seat->host, &mock->self);
        mock->is_in_init = false;
        if (r)
                qv_mock_end_instance(mock);
        return r;
}

void qv_mock_close(struct qv_mock *mock)
{
        if (!mock->seat)
                qv_mock_wrong("nothing to close: init was not called, or it failed");
        if (mock->plugin.close)
                mock->plugin.close(mock->self);
        qv_mock_end_instance(mock);
}

const char *qv_mock_init_error(const struct qv_mock *mock)
{
        return mock->init_error;
}

const char *qv_mock_unread(const struct qv_mock *mock, size_t index)
{
        for (const struct setting *setting = mock->settings; setting; setting = setting->next)
                if (!setting->is_read && index-- == 0)
                        return setting->name;
        return NULL;
}

void qv_mock_stop(struct qv_mock *mock)
{
        __atomic_store_n(&mock->stop_word, 1, __ATOMIC_RELEASE);
}

void qv_mock_step_ms(struct qv_mock *mock, uint64_t ms)
{
        uint64_t now_ms = __atomic_add_fetch(&mock->first->now_ms, ms, __ATOMIC_ACQ_REL);
        for (struct qv_mock *seat = mock->first; seat; seat = seat->next_seat)
                if (now_ms >= __atomic_load_n(&seat->deadline_ms, __ATOMIC_ACQUIRE))
                        qv_mock_stop(seat);
}

uint64_t qv_mock_now_ms(const struct qv_mock *mock)
{
        return __atomic_load_n(&mock->first->now_ms, __ATOMIC_ACQUIRE);
}

void qv_mock_takeover(struct qv_mock *mock)
{
        mock->fence_epoch++;
        mock->fence_start = 0;
}

void qv_mock_set_fence(struct qv_mock *mock, uint64_t epoch, uint64_t start)
{
        bool is_higher = epoch > mock->fence_epoch || (epoch == mock->fence_epoch && start > mock->fence_start);
        if (!is_higher || !start)
                qv_mock_wrong("fence (%llu, %llu) is not above (%llu, %llu); qv_mock_handle_zombie() has an older one",
                        (unsigned long long)epoch, (unsigned long long)start, (unsigned long long)mock->fence_epoch,
                        (unsigned long long)mock->fence_start);
        mock->fence_epoch = epoch;
        mock->fence_start = start - 1;
}

void qv_mock_crash(struct qv_mock *mock)
{
        if (!mock->running_count)
                qv_mock_wrong("no task is being handled: qv_mock_crash() belongs into a hook of qv_mock_on_call()");
        if (mock->first->next_seat)
                qv_mock_wrong("several seats run: a crash would end them all, which the mock cannot show");
        longjmp(mock->crash_point, 1);
}

void qv_mock_fail(struct qv_mock *mock, const char *service, int32_t result)
{
        enum service which = qv_mock_service(service);
        if (which == SERVICE_LOG)
                qv_mock_wrong("log cannot fail");
        if (result > 0)
                qv_mock_wrong("a service returns 0 or a negative errno, not %d", result);
        mock->failures[which] = result;
}

void qv_mock_on_call(
        struct qv_mock *mock, void (*hook)(struct qv_mock *mock, const char *service, void *arg), void *arg)
{
        mock->hook = hook;
        mock->hook_arg = arg;
}
