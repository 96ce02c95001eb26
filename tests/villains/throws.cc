/* CRASHED with SIGABRT: throws through the boundary, and noexcept ends it there. */
#include <quiver/plugin.h>

#include <stdexcept>
#include <string>

static int32_t handle(void *, const qv_task *task) noexcept
{
        if (std::string(static_cast<const char *>(task->payload)) == "bad")
                throw std::runtime_error("not caught");
        return QV_DONE;
}

QV_PLUGIN("throws", "1.0", QV_THREADS, nullptr, handle, nullptr, nullptr)
