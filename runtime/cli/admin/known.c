#include "cli/admin/known.h"

#include <jansson.h>
#include <stdio.h>

#include "base/strings.h"
#include "view/json.h"

struct known {
        struct strings hosts, handlers;
};

static void add_once(struct strings *to, const char *name)
{
        if (*name && !strings_has(to, name))
                strings_add(to, name);
}

static void add_document(void *self, const struct store_status *found)
{
        struct known *known = self;
        json_t *said = json_loadb(found->document.size ? found->document.data : "", found->document.size, 0, NULL);
        size_t i;
        const json_t *handler;
        add_once(&known->hosts, view_json_get_text(said, "name"));
        json_array_foreach(json_object_get(said, "handlers"), i, handler)
        {
                add_once(&known->handlers, view_json_get_text(handler, "name"));
        }
        json_decref(said);
}

static void warn(const char *command, const char *what, const char *name, const struct strings *names)
{
        const char *nearest = error_nearest(name, (const char *const *)names->items, names->count);
        (void)fprintf(stderr, "quiver %s: warning: no host knows the %s %s", command, what, name);
        if (nearest)
                (void)fprintf(stderr, " (did you mean %s?)", nearest);
        (void)fprintf(stderr, "; there %s", names->count == 1 ? "is" : "are");
        for (size_t i = 0; i < names->count; i++)
                (void)fprintf(stderr, "%s %s", i ? "," : "", names->items[i]);
        (void)fputc('\n', stderr);
}

static void warn_unless_known(struct cli_store *s, const char *name, bool is_host)
{
        struct known known = { 0 };
        struct error error = { "" };
        int r = client_documents(s->client, DOCUMENT_STATUS, add_document, NULL, &known, &error);
        /* A handler of the settings that are at hand is known, too: its host may not run yet. */
        for (size_t i = 0; i < s->config.handlers_count; i++)
                add_once(&known.handlers, s->config.handlers[i].name);
        const struct strings *names = is_host ? &known.hosts : &known.handlers;
        if (r == 0 && names->count && !strings_has(names, name))
                warn(s->command, is_host ? "host" : "handler", name, names);
        strings_free(&known.hosts);
        strings_free(&known.handlers);
}

void known_warn_of_handler(struct cli_store *s, const char *handler)
{
        warn_unless_known(s, handler, false);
}

void known_warn_of_host(struct cli_store *s, const char *host)
{
        warn_unless_known(s, host, true);
}
