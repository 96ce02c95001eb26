#include "host/report/process_figures.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
        return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static void read_memory(struct process_figures *figures)
{
        FILE *file = fopen("/proc/self/statm", "re");
        int64_t all = -1;
        int64_t resident = -1;
        if (!file)
                return;
        if (fscanf(file, "%" SCNd64 " %" SCNd64, &all, &resident) == 2) {
                figures->virtual_bytes = all * sysconf(_SC_PAGESIZE);
                figures->resident_bytes = resident * sysconf(_SC_PAGESIZE);
        }
        (void)fclose(file);
}

/* Not counted: the descriptor that reads the folder, "." and "..". */
static int64_t count_fds(void)
{
        DIR *folder = opendir("/proc/self/fd");
        int64_t count = -3;
        if (!folder)
                return -1;
        while (readdir(folder))
                count++;
        (void)closedir(folder);
        return count;
}

void process_figures_read(struct process_figures *ret_figures)
{
        struct rusage usage;
        struct rlimit limit;
        *ret_figures = (struct process_figures){ -1, -1, -1, -1, -1 };
        if (getrusage(RUSAGE_SELF, &usage) == 0)
                ret_figures->cpu_s = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
        read_memory(ret_figures);
        ret_figures->open_fds = count_fds();
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
                ret_figures->max_fds = (int64_t)limit.rlim_cur;
}
