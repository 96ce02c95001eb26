// statics: everything that keeps a C++ library from being unloaded, or its new version from being what runs.
//
// An inline static is STB_GNU_UNIQUE: the first library that brings it wins, in the whole process and for good.  A
// thread_local with a destructor keeps its library mapped.  The answer to a task is the build's name, as these see it.
#include <quiver/plugin.h>

#include <string>

#ifndef BUILD
#define BUILD "one"
#endif

struct Version {
        static inline std::string name = BUILD;
};

inline std::string &remembered()
{
        static std::string name = BUILD;
        return name;
}

struct Farewell {
        std::string name = BUILD;
        ~Farewell()
        {
                name.clear();
        }
};

inline thread_local Farewell farewell;

static int32_t handle(void *, const struct qv_task *task) noexcept
{
        std::string answer = Version::name + " " + remembered() + " " + farewell.name;
        return task->host->result(task->host, task, answer.data(), answer.size()) < 0 ? QV_REJECT : QV_DONE;
}

QV_PLUGIN("statics", BUILD, QV_THREADS, nullptr, handle, nullptr, nullptr)
