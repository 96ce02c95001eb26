#include "cli/top/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/numbers.h"

#define COLUMNS_ELSE 80u
#define LINES_ELSE   24u
#define SIZE_LEAST   2u
#define KEYS_AT_ONCE 256u

/* The other screen, no cursor, no wrapping of long lines; and back. */
#define ENTER_TEXT "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE_TEXT "\033[0m\033[?7h\033[?25h\033[?1049l"

/* Signal handlers have no other way to what they need. */
static struct {
        struct termios before;
        struct termios during;
        volatile sig_atomic_t is_entered;
        int wake[2]; /* a byte for each change of the size, and each time the process goes on */
} terminal = { .wake = { -1, -1 } };

static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

/* --- what handlers may call, too --- */

static void write_all(const char *text, size_t size)
{
        while (size) {
                ssize_t n = write(STDOUT_FILENO, text, size);
                if (n < 0 && errno == EAGAIN)
                        (void)poll(&(struct pollfd){ .fd = STDOUT_FILENO, .events = POLLOUT }, 1, 1000);
                else if (n < 0 && errno != EINTR)
                        return;
                text += n > 0 ? n : 0;
                size -= n > 0 ? (size_t)n : 0;
        }
}

static void enter(void)
{
        /* In the background the terminal belongs to somebody else. */
        if (tcgetpgrp(STDIN_FILENO) != getpgrp())
                return;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.during);
        write_all(ENTER_TEXT, sizeof(ENTER_TEXT) - 1);
        terminal.is_entered = 1;
}

static void leave(void)
{
        if (!terminal.is_entered)
                return;
        terminal.is_entered = 0;
        /* One write: a handler does not wait for a terminal that takes nothing. */
        ssize_t n = write(STDOUT_FILENO, LEAVE_TEXT, sizeof(LEAVE_TEXT) - 1);
        (void)n;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

/* --- signals --- */

static void set_handler(int signal_number, void (*handler)(int), int flags)
{
        struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
        (void)sigemptyset(&action.sa_mask);
        (void)sigaction(signal_number, &action, NULL);
}

/* The handler is the default one by now (SA_RESETHAND), and the signal is not blocked: the process ends by it. */
static void on_end(int signal_number)
{
        leave();
        (void)raise(signal_number);
}

static void on_stop(int signal_number);

/* The process goes on. */
static void on_wake(int signal_number)
{
        int saved = errno;
        if (signal_number != SIGWINCH) {
                set_handler(SIGTSTP, on_stop, SA_RESTART | SA_RESETHAND | SA_NODEFER);
                enter();
        }
        ssize_t n = write(terminal.wake[1], "", 1);
        (void)n;
        errno = saved;
}

static void on_stop(int signal_number)
{
        leave();
        (void)raise(signal_number);
        /* A process that nobody could continue is not stopped: then there is no SIGCONT either. */
        if (!terminal.is_entered)
                on_wake(signal_number);
}

static void set_handlers(void)
{
        for (size_t i = 0; i < COUNT_OF(crashes); i++)
                set_handler(crashes[i], on_end, SA_RESETHAND | SA_NODEFER);
        for (size_t i = 0; i < COUNT_OF(ends); i++)
                set_handler(ends[i], on_end, SA_RESETHAND | SA_NODEFER);
        set_handler(SIGTSTP, on_stop, SA_RESTART | SA_RESETHAND | SA_NODEFER);
        set_handler(SIGCONT, on_wake, SA_RESTART);
        set_handler(SIGWINCH, on_wake, SA_RESTART);
}

/* --- the screen --- */

int terminal_open(struct error *error)
{
        if (tcgetattr(STDIN_FILENO, &terminal.before) < 0)
                return error_set(error, -errno, "cannot read the settings of the terminal: %s", strerror(errno));
        if (pipe2(terminal.wake, O_CLOEXEC | O_NONBLOCK) < 0)
                return error_set(error, -errno, "cannot make a pipe: %s", strerror(errno));
        terminal.during = terminal.before;
        /* Keys come one by one and unseen; Ctrl-C and Ctrl-Z stay signals. */
        terminal.during.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
        terminal.during.c_cc[VMIN] = 1;
        terminal.during.c_cc[VTIME] = 0;
        set_handlers();
        enter();
        return 0;
}

void terminal_close(void)
{
        leave();
        for (size_t i = 0; i < COUNT_OF(crashes); i++)
                set_handler(crashes[i], SIG_DFL, 0);
        for (size_t i = 0; i < COUNT_OF(ends); i++)
                set_handler(ends[i], SIG_DFL, 0);
        set_handler(SIGTSTP, SIG_DFL, 0);
        set_handler(SIGCONT, SIG_DFL, 0);
        set_handler(SIGWINCH, SIG_DFL, 0);
        (void)close(terminal.wake[0]);
        (void)close(terminal.wake[1]);
}

void terminal_size(unsigned *ret_columns, unsigned *ret_lines)
{
        struct winsize size = { 0 };
        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        *ret_columns = size.ws_col >= SIZE_LEAST ? size.ws_col : COLUMNS_ELSE;
        *ret_lines = size.ws_row >= SIZE_LEAST ? size.ws_row : LINES_ELSE;
}

void terminal_draw(const struct buffer *lines)
{
        struct buffer screen = { 0 };
        const char *text = (const char *)lines->data;
        if (!terminal.is_entered)
                return;
        buffer_printf(&screen, "\033[H");
        /* What a line leaves of the one that stood there is erased, and no line follows the last: it would scroll. */
        for (size_t i = 0; i < lines->size; i++) {
                bool is_end = text[i] == '\n';
                buffer_put(&screen, is_end ? "\033[K" : text + i, is_end ? 3 : 1);
                if (is_end && i + 1 < lines->size)
                        buffer_put(&screen, "\r\n", 2);
        }
        buffer_printf(&screen, "\033[J");
        write_all((const char *)screen.data, screen.size);
        buffer_free(&screen);
}

void terminal_say(const char *text)
{
        struct buffer line = { 0 };
        unsigned columns;
        unsigned lines;
        terminal_size(&columns, &lines);
        buffer_printf(&line, "\033[%u;1H%.*s\033[K", lines, (int)columns, text);
        if (terminal.is_entered)
                write_all((const char *)line.data, line.size);
        buffer_free(&line);
}

/* --- keys --- */

int terminal_wait(uint64_t wait_ms, struct buffer *keys)
{
        char bytes[KEYS_AT_ONCE];
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                { .fd = terminal.wake[0], .events = POLLIN } };
        int r = poll(fds, COUNT_OF(fds), (int)min_u64(wait_ms, INT32_MAX));
        if (r < 0)
                return errno == EINTR ? 0 : -EPIPE;
        if (fds[1].revents)
                while (read(terminal.wake[0], bytes, sizeof(bytes)) > 0)
                        continue;
        if (!fds[0].revents)
                return 0;
        ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
        if (n > 0)
                buffer_put(keys, bytes, (size_t)n);
        return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)) ? 0 : -EPIPE;
}
