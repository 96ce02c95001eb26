// my-plugin: counts the words of its payload.
#include <exception>
#include <quiver/plugin.h>
#include <sstream>
#include <stdexcept>
#include <string>

namespace
{

// One per seat, that is, per thread: it needs no lock.
class Instance
{
      public:
        // Read every setting here: what init does not ask for is reported as a likely misspelling.
        explicit Instance(const qv_host *host) : words_max(qv_config_int(host, "words_max", 1000))
        {
                if (words_max < 1)
                        throw std::invalid_argument("words_max has to be at least 1");
        }

        // QV_DONE: finished.  QV_RETRY: later again.  QV_REJECT: never.  QV_UNAVAILABLE: not this task's fault.
        // QV_LATER: neither, and only this key has to wait.
        int32_t handle(const qv_task *task) const
        {
                std::istringstream text(std::string(static_cast<const char *>(task->payload), task->payload_size));
                int64_t words = 0;
                for (std::string word; text >> word;)
                        words++;
                if (!task->payload_size)
                        return qv_errorf(task, "the payload is empty"), QV_REJECT;
                if (words > words_max)
                        return qv_errorf(task, "%s words are too many", std::to_string(words).c_str()), QV_REJECT;
                const std::string result = std::to_string(words);
                return task->host->result(task->host, task, result.data(), result.size()) < 0 ? QV_RETRY : QV_DONE;
        }

      private:
        int64_t words_max;
};

// The functions of the table are noexcept: what is not caught here ends the runner.
int32_t my_plugin_init(const qv_host *host, void **ret_self) noexcept
try {
        *ret_self = new Instance(host);
        return 0;
} catch (const std::exception &problem) {
        return qv_init_errorf(host, "%s", problem.what());
}

int32_t my_plugin_handle(void *self, const qv_task *task) noexcept
try {
        return static_cast<const Instance *>(self)->handle(task);
} catch (const std::exception &problem) {
        return qv_errorf(task, "%s", problem.what()), QV_RETRY;
}

void my_plugin_close(void *self) noexcept
{
        delete static_cast<Instance *>(self);
}

} // namespace

// QV_THREADS: there are no globals, so several seats may share a process.
QV_PLUGIN("my-plugin", "0.1", QV_THREADS, my_plugin_init, my_plugin_handle, my_plugin_close, nullptr)
