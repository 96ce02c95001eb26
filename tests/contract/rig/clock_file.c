#include "clock_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static char path[] = "/tmp/quiver-clock-XXXXXX";

/* The library lies beside the test programs. */
static void library_path(char library[PATH_MAX])
{
        ssize_t size = readlink("/proc/self/exe", library, PATH_MAX - 64);
        assert_true(size > 0);
        library[size] = 0;
        *strrchr(library, '/') = 0;
        (void)strcat(library, "/../preload/clock.so");
        assert_int_equal(access(library, R_OK), 0);
}

uint64_t *clock_file_open(void)
{
        char library[PATH_MAX];
        (void)strcpy(strrchr(path, '-'), "-XXXXXX");
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, sizeof(uint64_t)), 0);
        uint64_t *wall_ms = mmap(NULL, sizeof(*wall_ms), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(wall_ms != MAP_FAILED);
        (void)close(fd);
        library_path(library);
        (void)setenv("QUIVER_TEST_CLOCK", path, 1);
        (void)setenv("LD_PRELOAD", library, 1);
        return wall_ms;
}

void clock_file_close(void)
{
        (void)unsetenv("LD_PRELOAD");
        (void)unlink(path);
}
