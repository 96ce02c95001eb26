/* check.h: cmocka with the headers that it wants first, and what several tests need. */
#ifndef QUIVER_TESTS_CHECK_H
#define QUIVER_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is written to one descriptor, from capture_start() to capture_stop(). */
struct capture {
        int fd;
        int saved;
        int file;
};

static inline void capture_start(struct capture *c, int fd)
{
        (void)fflush(NULL);
        c->fd = fd;
        c->saved = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        c->file = memfd_create("capture", MFD_CLOEXEC);
        assert_true(c->saved >= 0 && c->file >= 0 && dup2(c->file, fd) == fd);
}

/* Puts the descriptor back and the bytes, cut and with a NUL, into `text`. */
static inline void capture_stop(struct capture *c, char *text, size_t size)
{
        (void)fflush(NULL);
        ssize_t n = pread(c->file, text, size - 1, 0);
        assert_true(dup2(c->saved, c->fd) == c->fd);
        (void)close(c->saved);
        (void)close(c->file);
        assert_true(n >= 0);
        text[n] = 0;
}

#define assert_contains(text, part)                                                                                    \
        do {                                                                                                           \
                if (!strstr((text), (part)))                                                                           \
                        fail_msg("\"%s\" is not in \"%s\"", (part), (text));                                           \
        } while (0)

#endif
