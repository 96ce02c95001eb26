/* CRASHED: jumps out of its call with longjmp, to a frame that is gone. */
#include <setjmp.h>

#include <quiver/plugin.h>

static jmp_buf nowhere;

__attribute__((noinline)) static void remember(void)
{
        (void)setjmp(nowhere);
}

__attribute__((noinline)) static void overwrite(void)
{
        volatile char stack[4096];
        for (size_t i = 0; i < sizeof(stack); i++)
                stack[i] = 0x5a;
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        remember();
        overwrite();
        longjmp(nowhere, 1);
}

QV_PLUGIN("longjmp", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
