/* mock_script.h: a plugin whose handler is whatever the test says, and the mock that it runs in. */
#ifndef QUIVER_TESTS_MOCK_SCRIPT_H
#define QUIVER_TESTS_MOCK_SCRIPT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <quiver/mock.h>

/* Run inside handle() and init(). */
static int32_t (*act)(const struct qv_task *task);
static int32_t (*act_init)(const struct qv_host *host);
static int closes;

static int32_t script_init(const struct qv_host *host, void **ret_self)
{
        *ret_self = &closes;
        return act_init ? act_init(host) : 0;
}

static int32_t script_handle(void *self, const struct qv_task *task)
{
        assert_ptr_equal(self, &closes);
        return act(task);
}

static void script_close(void *self)
{
        assert_ptr_equal(self, &closes);
        closes++;
}

static bool script_is_heedless; /* it starts what follows one of its key that is not done */

static void script_handle_many(void *self, const struct qv_task *const *tasks, uint32_t count, int32_t *outcomes)
{
        assert_ptr_equal(self, &closes);
        for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(outcomes[i], QV_RETRY);
                if (script_is_heedless || !qv_is_over(tasks, i, outcomes))
                        outcomes[i] = act(tasks[i]);
        }
}

static const struct qv_plugin script = { sizeof(script), QV_ABI_MAJOR, QV_ABI_MINOR, 0, "script", "1.0", script_init,
        script_handle, script_close, script_handle_many, NULL, NULL };

static struct qv_mock *mock;

static int setup(void **state)
{
        (void)state;
        act = NULL;
        act_init = NULL;
        closes = 0;
        mock = qv_mock_new(&script);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        qv_mock_free(mock);
        return 0;
}

/* Runs `action` in one start of a new task. */
static struct qv_mock_task *run(int32_t (*action)(const struct qv_task *task))
{
        act = action;
        assert_int_equal(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "k", "payload");
        (void)qv_mock_handle(mock, task);
        return task;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
