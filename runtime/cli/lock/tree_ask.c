#include "cli/lock/tree_ask.h"

static void on_done(struct coord_request *request)
{
        ((struct tree_ask *)request)->is_done = true;
}

/* What a reply points to lives as long as these calls. */
static void on_got(struct coord_request *request)
{
        struct tree_ask *ask = (struct tree_ask *)request;
        ask->is_done = true;
        if (request->status == 0)
                buffer_put(&ask->data, ask->get.data.data, ask->get.data.size);
}

static void on_listed(struct coord_request *request)
{
        struct tree_ask *ask = (struct tree_ask *)request;
        ask->is_done = true;
        for (uint32_t i = 0; request->status == 0 && i < ask->children.names_count; i++)
                strings_add(&ask->names, ask->children.names[i]);
}

static int wait(struct cli_tree *t, struct tree_ask *ask)
{
        while (!ask->is_done)
                (void)uv_run(&t->loop, UV_RUN_ONCE);
        cli_tree_answers(t, true);
        return ask->request.status;
}

int tree_ask_get(struct cli_tree *t, struct tree_ask *ask)
{
        ask->request.done = on_got;
        coord_get(t->coord, &ask->get);
        return wait(t, ask);
}

int tree_ask_set(struct cli_tree *t, struct tree_ask *ask)
{
        ask->request.done = on_done;
        coord_set(t->coord, &ask->set);
        return wait(t, ask);
}

int tree_ask_delete(struct cli_tree *t, struct tree_ask *ask)
{
        ask->request.done = on_done;
        coord_delete(t->coord, &ask->del);
        return wait(t, ask);
}

int tree_ask_children(struct cli_tree *t, struct tree_ask *ask)
{
        ask->request.done = on_listed;
        coord_children(t->coord, &ask->children);
        return wait(t, ask);
}

int tree_ask_multi(struct cli_tree *t, struct tree_ask *ask)
{
        ask->request.done = on_done;
        coord_multi(t->coord, &ask->multi);
        return wait(t, ask);
}
