/* CRASHED: fills the whole memory that it shares with the host with rubbish, three times over. */
#include <stdio.h>
#include <stdlib.h>

#include <quiver/plugin.h>

/* Every writable shared mapping of this process. */
static void scribble(unsigned char byte)
{
        char line[512];
        unsigned long from;
        unsigned long to;
        char mode[8];
        FILE *maps = fopen("/proc/self/maps", "re");
        while (maps && fgets(line, sizeof(line), maps)) {
                if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || strcmp(mode, "rw-s") != 0)
                        continue;
                size_t size = to - from < 8UL << 20 ? to - from : 8UL << 20; /* the spills behind it are huge */
                for (size_t i = 0; i < size; i++)
                        ((volatile unsigned char *)from)[i] = byte ? byte : (unsigned char)rand();
        }
        if (maps)
                (void)fclose(maps);
}

static int32_t handle(void *self, const struct qv_task *task)
{
        (void)self;
        if (strcmp(task->payload, "bad") != 0)
                return QV_DONE;
        scribble(0xff);
        scribble(0x01);
        scribble(0);
        return QV_DONE;
}

QV_PLUGIN("scribbles", "1.0", QV_THREADS, NULL, handle, NULL, NULL)
