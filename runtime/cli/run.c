/* run.c: `quiver run`: a host in the foreground. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "config/config.h"
#include "host/harden.h"
#include "host/host.h"

static const struct option_spec specs[] = {
        { 'c', "config", "FILE", "the settings (default: $QUIVER_CONFIG, ./etc/runtime.cfg, /etc/quiver/runtime.cfg)" },
};

static struct options options = {
        .usage = "run [-c FILE]",
        .about =
                "Runs a host in the foreground: claims tasks and runs them with the handlers that runtime.cfg names.\n"
                "If nobody answers for the store or the coordination when it starts, it exits with 3.\n"
                "SIGTERM or Ctrl-C: what runs is finished within lease.drain, then it leaves; a second one cuts "
                "short.\n"
                "If the store does not answer, it gives up once its leases are over anyway, and exits with 1; a third\n"
                "signal: at once.\n"
                "SIGHUP: takes up changed settings and plugins, as quiver reload does.",
        .specs = specs,
        .count = sizeof(specs) / sizeof(specs[0]),
        .examples = "  quiver run\n"
                    "  quiver run -c /etc/quiver/runtime.cfg\n",
};

/* A supervisor may try again: nothing is wrong with the settings. */
static bool is_unreachable(int r)
{
        return r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT || r == -EHOSTUNREACH || r == -ENETUNREACH ||
               r == -EPIPE || r == -EBUSY; /* it loads, a Cluster is down, another process holds the file */
}

static int run_with_config(const char *given)
{
        struct error error = { "" };
        struct problems problems = { .reader = READER_HOST };
        struct config config;
        char *path = NULL;
        const char *how = NULL;
        harden_process();
        if (config_find(given, &path, &how, &error) < 0) {
                (void)fprintf(stderr, "quiver run: %s\n", error.text);
                return EXIT_FAILED;
        }
        int r = config_load(path, &config, &problems);
        for (size_t i = 0; i < problems.count; i++) {
                char text[ERROR_TEXT_MAX];
                (void)fprintf(stderr, "%s\n", problem_format(&problems.items[i], text, sizeof(text)));
        }
        problems_free(&problems);
        if (r < 0) {
                (void)fprintf(stderr, "quiver run: nothing was started; try: quiver check -c %s\n", path);
                free(path);
                return EXIT_FAILED;
        }
        log_set_level((enum log_level)config.log.level);
        log_event(LEVEL_INFO, "config", "file=%s how=%s app=%s store=%s", LOG_QUOTE(path), LOG_QUOTE(how), config.app,
                LOG_QUOTE(config.store.url.text));
        r = host_run(&config, &error);
        if (r < 0)
                (void)fprintf(stderr, "quiver run: %s\n", error.text);
        config_free(&config);
        free(path);
        return r >= 0 ? EXIT_DONE : is_unreachable(r) ? EXIT_UNREACHABLE : EXIT_FAILED;
}

int cmd_run(int argc, char **argv)
{
        const char *named = NULL;
        int id;
        options_start(&options, argc, argv);
        while ((id = options_next(&options)) != OPTIONS_END) {
                if (id == OPTIONS_HELP)
                        return EXIT_DONE;
                if (id == OPTIONS_WRONG)
                        return EXIT_USAGE;
                if (id == OPTIONS_WORD)
                        return options_wrong(&options, "what is %s?  run takes no words", options.value);
                named = options.value;
        }
        return run_with_config(named);
}
