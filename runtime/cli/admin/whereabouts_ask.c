#include "cli/admin/whereabouts_ask.h"

static void add_desired(void *self, const struct store_desired *item)
{
        whereabouts_add_desired(self, item);
}

static void add_status(void *self, const struct store_status *document)
{
        whereabouts_add_status(self, document);
}

static void add_running(void *self, const struct store_status *document)
{
        whereabouts_add_running(self, document);
}

int whereabouts_ask(struct cli_store *s, struct whereabouts *ret_w, struct error *error)
{
        whereabouts_init(ret_w);
        int r = client_desired(s->client, add_desired, ret_w, NULL, error);
        if (r == 0)
                r = client_documents(s->client, DOCUMENT_STATUS, add_status, NULL, ret_w, error);
        if (r == 0)
                r = client_documents(s->client, DOCUMENT_RUNNING, add_running, NULL, ret_w, error);
        return r;
}
