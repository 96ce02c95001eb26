// Tests of my-plugin against the mock host.  See quiver/mock.h for what else it can do.
#include <cstdio>
#include <memory>
#include <quiver/mock.h>

namespace
{

struct Free {
        void operator()(qv_mock *mock) const
        {
                qv_mock_free(mock);
        }
};

std::unique_ptr<qv_mock, Free> new_mock()
{
        return std::unique_ptr<qv_mock, Free>(qv_mock_new(&quiver_plugin));
}

void words_are_counted()
{
        auto mock = new_mock();
        QV_EXPECT_INT(qv_mock_init(mock.get()), 0);
        qv_mock_task *task = qv_mock_new_task(mock.get(), "user-1", "  one two\nthree ");
        qv_mock_handle(mock.get(), task);
        QV_EXPECT_OUTCOME(task, QV_DONE);
        QV_EXPECT_TEXT(task->result, "3");
}

void an_empty_payload_is_rejected()
{
        auto mock = new_mock();
        QV_EXPECT_INT(qv_mock_init(mock.get()), 0);
        qv_mock_task *task = qv_mock_new_task(mock.get(), "user-1", "");
        qv_mock_handle(mock.get(), task);
        QV_EXPECT_OUTCOME(task, QV_REJECT);
        QV_EXPECT_TEXT(task->error, "the payload is empty");
        QV_EXPECT(!task->result);
}

void the_limit_comes_from_the_config()
{
        auto mock = new_mock();
        qv_mock_config(mock.get(), "words_max", "2");
        QV_EXPECT_INT(qv_mock_init(mock.get()), 0);
        QV_EXPECT(!qv_mock_unread(mock.get(), 0)); /* every setting was read */
        QV_EXPECT_INT(qv_mock_handle(mock.get(), qv_mock_new_task(mock.get(), nullptr, "one two")), QV_DONE);
        QV_EXPECT_INT(qv_mock_handle(mock.get(), qv_mock_new_task(mock.get(), nullptr, "one two three")), QV_REJECT);
}

void a_limit_below_one_is_refused()
{
        auto mock = new_mock();
        qv_mock_config(mock.get(), "words_max", "0");
        QV_EXPECT(qv_mock_init(mock.get()) != 0);
        QV_EXPECT_PART(qv_mock_init_error(mock.get()), "at least 1");
}

} // namespace

int main()
{
        words_are_counted();
        an_empty_payload_is_rejected();
        the_limit_comes_from_the_config();
        a_limit_below_one_is_refused();
        if (qv_mock_failures())
                return 1;
        std::puts("my-plugin: 4 tests passed");
        return 0;
}
