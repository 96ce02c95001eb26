#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coord/local/worker.h"

static const char *why(int status)
{
        switch (status) {
        case -ENOENT:
                return "no such node";
        case -EEXIST:
                return "there is one already";
        case -ESTALE:
                return "its version is another";
        case -ENOTEMPTY:
                return "it has children";
        case -ENOTDIR:
                return "an ephemeral node has no children";
        case -EOWNERDEAD:
                return "the session expired before it was done";
        default:
                return strerror(-status);
        }
}

static void refuse(struct job *job, const char *path, int status)
{
        job->status =
                error_set(&job->error, status, "%s %.512s: %s", coord_op_name(job->op), path ? path : "", why(status));
}

static void get(struct worker *worker, struct job *job)
{
        const struct local_tree *tree = &worker->replica.tree;
        const struct tree_node *node = tree_get(tree, job->path);
        if (job->watch)
                watch_arm(&worker->watches, tree, WATCH_NODE, job->path);
        if (!node) {
                refuse(job, job->path, -ENOENT);
                return;
        }
        job->data = arena_copy(&job->memory, (struct span){ node->data, node->size });
        job->stat = node->stat;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void children(struct worker *worker, struct job *job)
{
        const struct local_tree *tree = &worker->replica.tree;
        const struct tree_node *node = tree_get(tree, job->path);
        const struct tree_node *child;
        size_t skip = strlen(job->path) + 1;
        if (job->watch)
                watch_arm(&worker->watches, tree, WATCH_CHILDREN, job->path);
        for (child = node ? node->children : NULL; child; child = child->next)
                job->names_count++;
        job->names = arena_take(&job->memory, job->names_count * sizeof(*job->names));
        uint32_t at = 0;
        for (child = node ? node->children : NULL; child; child = child->next) {
                const char *name = child->path + skip;
                job->names[at++] = arena_copy(&job->memory, (struct span){ name, strlen(name) }).data;
        }
        if (at)
                qsort(job->names, at, sizeof(*job->names), compare_names);
}

static int change(struct worker *worker, struct job *job, struct error *error)
{
        int failure = 0;
        job->change.session = worker->own.tree.id;
        int r = replica_change(&worker->replica, &job->change, &failure, error);
        if (failure) {
                job->status = error_set(&job->error, -ECONNRESET, "%s: %s", coord_op_name(job->op), error->text);
                return failure;
        }
        if (r) {
                const char *path = job->change.ops[0].path;
                for (uint32_t i = 0; i < job->change.ops_count; i++)
                        if (job->change.ops[i].status)
                                path = job->change.ops[i].path;
                refuse(job, path, r);
        }
        return 0;
}

int worker_execute(struct worker *worker, struct job *job, struct error *error)
{
        int r = 0;
        if (job->status)
                return 0;
        if (job->session && job->session != worker->own.tree.id) {
                refuse(job, job->path ? job->path : job->change.ops[0].path, -EOWNERDEAD);
                return 0;
        }
        if (job->op == COORD_OP_GET || job->op == COORD_OP_CHILDREN) {
                /* A read sees every change that was finished before it was started. */
                r = replica_catch_up(&worker->replica, error);
                if (r)
                        return r;
                if (job->op == COORD_OP_GET)
                        get(worker, job);
                else
                        children(worker, job);
                return 0;
        }
        return change(worker, job, error);
}
