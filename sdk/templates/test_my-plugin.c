/* Tests of my-plugin against the mock host.  See quiver/mock.h for what else it can do. */
#include <quiver/mock.h>

static void words_are_counted(void)
{
        struct qv_mock *mock = qv_mock_new(&quiver_plugin);
        QV_EXPECT_INT(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "user-1", "  one two\nthree ");
        qv_mock_handle(mock, task);
        QV_EXPECT_OUTCOME(task, QV_DONE);
        QV_EXPECT_TEXT(task->result, "3");
        qv_mock_free(mock);
}

static void an_empty_payload_is_rejected(void)
{
        struct qv_mock *mock = qv_mock_new(&quiver_plugin);
        QV_EXPECT_INT(qv_mock_init(mock), 0);
        struct qv_mock_task *task = qv_mock_new_task(mock, "user-1", "");
        qv_mock_handle(mock, task);
        QV_EXPECT_OUTCOME(task, QV_REJECT);
        QV_EXPECT_TEXT(task->error, "the payload is empty");
        QV_EXPECT(!task->result);
        qv_mock_free(mock);
}

static void the_limit_comes_from_the_config(void)
{
        struct qv_mock *mock = qv_mock_new(&quiver_plugin);
        qv_mock_config(mock, "words_max", "2");
        QV_EXPECT_INT(qv_mock_init(mock), 0);
        QV_EXPECT(!qv_mock_unread(mock, 0)); /* every setting was read */
        QV_EXPECT_INT(qv_mock_handle(mock, qv_mock_new_task(mock, NULL, "one two")), QV_DONE);
        QV_EXPECT_INT(qv_mock_handle(mock, qv_mock_new_task(mock, NULL, "one two three")), QV_REJECT);
        qv_mock_free(mock);
}

static void a_limit_below_one_is_refused(void)
{
        struct qv_mock *mock = qv_mock_new(&quiver_plugin);
        qv_mock_config(mock, "words_max", "0");
        QV_EXPECT(qv_mock_init(mock) != 0);
        QV_EXPECT_PART(qv_mock_init_error(mock), "at least 1");
        qv_mock_free(mock);
}

int main(void)
{
        words_are_counted();
        an_empty_payload_is_rejected();
        the_limit_comes_from_the_config();
        a_limit_below_one_is_refused();
        if (qv_mock_failures())
                return 1;
        puts("my-plugin: 4 tests passed");
        return 0;
}
