#include "cli/admin/done_ask.h"

#include <errno.h>

#include "base/clock.h"
#include "cli/control_call.h"

#define HOST_MS 2000 /* that a host of this machine has for its answer */

static void add_document(void *self, const struct store_status *document)
{
        done_search_add(self, document);
}

/* A host that does not answer, or is another's, is not needed for it. */
static void ask_hosts_here(const struct cli_store *s, struct done_search *search)
{
        struct strings names = { 0 };
        control_names(s->config.state, &names);
        for (size_t i = 0; i < names.count; i++) {
                struct error error = { "" };
                json_t *reply = NULL;
                json_t *request = json_pack("{s:s, s:s%}", "verb", "done", "id", search->id.data, search->id.size);
                if (control_ask(s->config.state, names.items[i], request, HOST_MS, &reply, &error) == 0)
                        done_search_add_now(search, reply);
                json_decref(reply);
        }
        strings_free(&names);
}

int done_ask(struct cli_store *s, struct span id, json_t **ret_found, struct error *error)
{
        struct done_search search;
        done_search_init(&search, id, clock_wall_ms());
        int r = client_documents(s->client, DOCUMENT_DONE, add_document, NULL, &search, error);
        if (r == 0)
                ask_hosts_here(s, &search);
        if (r == 0 && search.found) {
                *ret_found = json_incref(search.found);
        } else if (r == 0) {
                struct buffer why = { 0 };
                done_search_missing(&why, &search);
                r = error_set(error, -ENOENT, "there is no task %.*s: %s", (int)id.size, id.data, buffer_text(&why));
                buffer_free(&why);
        }
        done_search_free(&search);
        return r;
}
