/* run.c: `quiver run`: a host in the foreground. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/open.h"
#include "host/harden.h"
#include "host/host.h"

/* Whether a supervisor may try again: the settings are not at fault. */
static bool is_unreachable(int r)
{
        return r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT || r == -EHOSTUNREACH || r == -ENETUNREACH ||
               r == -EPIPE || r == -EBUSY; /* Redis is loading, a Cluster is down, or another process holds the file */
}

static int run_with_config(const char *given, bool is_strict)
{
        struct error error = { "" };
        struct cli_store s;
        harden_process();
        (void)signal(SIGUSR1, SIG_IGN); /* log rotation must not kill a host that is starting */
        int code = cli_load(&s, "run", given, READER_HOST);
        if (code != EXIT_DONE)
                return code;
        log_set_level((enum log_level)s.config.log.level);
        int terminal = s.config.log.file ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
        if (s.config.log.file && log_to_file(s.config.log.file, &error) < 0) {
                config_free(&s.config);
                return cli_fail("run", -EINVAL, error.text);
        }
        if (log_set_format((enum log_format)s.config.log.format, s.config.log.journal, &error) < 0) {
                config_free(&s.config);
                return cli_fail("run", -EINVAL, error.text);
        }
        log_event(LEVEL_INFO, "config", "file=%s how=%s app=%s store=%s", LOG_QUOTE(s.config.path), LOG_QUOTE(s.how),
                s.config.app, LOG_QUOTE(s.config.store.url.text));
        int r = host_run(&s.config, is_strict, &error);
        if (r < 0)
                (void)fprintf(stderr, "quiver run: %s\n", error.text);
        if (r < 0 && terminal >= 0)
                (void)dprintf(terminal, "quiver run: %s\n", error.text);
        if (terminal >= 0)
                (void)close(terminal);
        config_free(&s.config);
        return r >= 0 ? EXIT_DONE : is_unreachable(r) ? EXIT_UNREACHABLE : EXIT_FAILED;
}

static int take_name(void *self, const char *value, struct error *error)
{
        (void)self;
        (void)error;
        char *setting = text_printf("host.name=%s", value);
        strings_add(&cli_set, setting);
        free(setting);
        return 0;
}

int cmd_run(int argc, char **argv)
{
        const char *config = NULL;
        bool is_strict = false;
        const struct option table[] = {
                OPT_CONFIG(&config),
                OPT_FLAG("--strict", &is_strict, "do not start if a handler's plugin is missing or may not be used"),
                OPT_CALL("--name NAME", take_name, NULL, "the host's name, as --set host.name=NAME"),
        };
        struct options o = {
                .usage = "run [-c FILE] [--strict] [--name NAME] [--set NAME=VALUE]",
                .about = "Runs a host in the foreground: claims tasks and runs them with the handlers that runtime.cfg "
                         "names.\n"
                         "A handler whose plugin is missing or may not be used is refused: its tasks wait, the others "
                         "go on.\n"
                         "If the store or the coordination does not answer when it starts, it exits with 3.\n"
                         "SIGTERM or Ctrl-C: what runs is finished within lease.drain, then it leaves; a second one "
                         "cuts short.\n"
                         "If the store does not answer, it gives up once its leases are over anyway, and exits with 1; "
                         "a third\nsignal: at once.\n"
                         "SIGHUP: takes up changed settings and plugins, as quiver reload does.\n"
                         "SIGUSR1: opens log.file anew, after it was renamed; SIGHUP does that, too.",
                OPTIONS_TABLE(table),
                .hint = "it takes options only",
                .examples =
                        "  quiver run\n"
                        "  quiver run --name b --set http.listen=127.0.0.1:7071      a second host of this machine\n"
                        "  quiver run -c /etc/quiver/runtime.cfg\n",
        };
        int code;
        return options_read(&o, argc, argv, &code) ? run_with_config(config, is_strict) : code;
}
