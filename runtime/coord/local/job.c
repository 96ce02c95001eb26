#include "coord/local/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct job *job_new(enum job_kind kind)
{
        struct job *job = memory_zero(1, sizeof(*job));
        job->kind = kind;
        return job;
}

void job_free(struct job *job)
{
        arena_free(job->memory);
        free(job->url);
        free(job);
}

static const char *copy_text(struct job *job, const char *text)
{
        return arena_copy(&job->memory, (struct span){ text, strlen(text) }).data;
}

static void copy_ops(struct job *job, const struct coord_multi_op *ops, uint32_t count)
{
        job->change.ops = arena_take(&job->memory, count * sizeof(*ops));
        job->change.ops_count = count;
        for (uint32_t i = 0; i < count; i++) {
                struct coord_multi_op *op = &job->change.ops[i];
                *op = ops[i];
                op->path = copy_text(job, op->path);
                op->data = arena_copy(&job->memory, op->data);
        }
}

static void copy_request(struct job *job, struct coord_request *request)
{
        switch (request->op) {
        case COORD_OP_CREATE: {
                const struct coord_create *create = (const struct coord_create *)request;
                copy_ops(job,
                        &(struct coord_multi_op){ .kind = COORD_CREATE,
                                .path = create->path,
                                .data = create->data,
                                .flags = create->flags },
                        1);
                job->change.makes_parents = true;
                break;
        }
        case COORD_OP_SET: {
                const struct coord_set *set = (const struct coord_set *)request;
                copy_ops(job,
                        &(struct coord_multi_op){
                                .kind = COORD_SET, .path = set->path, .data = set->data, .version = set->version },
                        1);
                break;
        }
        case COORD_OP_DELETE: {
                const struct coord_delete *del = (const struct coord_delete *)request;
                copy_ops(job,
                        &(struct coord_multi_op){ .kind = COORD_DELETE, .path = del->path, .version = del->version },
                        1);
                break;
        }
        case COORD_OP_MULTI: {
                const struct coord_multi *multi = (const struct coord_multi *)request;
                copy_ops(job, multi->ops, multi->ops_count);
                break;
        }
        case COORD_OP_GET: {
                const struct coord_get *get = (const struct coord_get *)request;
                job->path = copy_text(job, get->path);
                job->watch = get->watch;
                break;
        }
        case COORD_OP_CHILDREN: {
                const struct coord_children *children = (const struct coord_children *)request;
                job->path = copy_text(job, children->path);
                job->watch = children->watch;
                break;
        }
        default:
                break;
        }
}

struct job *job_from_request(struct coord_request *request)
{
        struct job *job = job_new(JOB_REQUEST);
        job->request = request;
        job->op = request->op;
        job->status = request->status;
        if (job->status)
                job->error = request->error;
        else
                copy_request(job, request);
        return job;
}

static void reply_multi(struct job *job, struct coord_multi *multi)
{
        for (uint32_t i = 0; i < multi->ops_count && i < job->change.ops_count; i++) {
                multi->ops[i].status = job->change.ops[i].status;
                multi->ops[i].stat = job->change.ops[i].stat;
        }
}

void job_reply(struct job *job)
{
        struct coord_request *request = job->request;
        request->error = job->error;
        request->reply = job->memory;
        job->memory = NULL;
        if (request->op == COORD_OP_MULTI)
                reply_multi(job, (struct coord_multi *)request);
        if (job->status)
                return;
        switch (request->op) {
        case COORD_OP_CREATE: {
                struct coord_create *create = (struct coord_create *)request;
                create->made =
                        arena_copy(coord_arena(request), (struct span){ job->change.made, strlen(job->change.made) })
                                .data;
                create->stat = job->change.ops[0].stat;
                break;
        }
        case COORD_OP_SET:
                ((struct coord_set *)request)->stat = job->change.ops[0].stat;
                break;
        case COORD_OP_GET:
                ((struct coord_get *)request)->data = job->data;
                ((struct coord_get *)request)->stat = job->stat;
                break;
        case COORD_OP_CHILDREN:
                ((struct coord_children *)request)->names = job->names;
                ((struct coord_children *)request)->names_count = job->names_count;
                break;
        default:
                break;
        }
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

void job_add(struct job_list *list, struct job *job)
{
        job->next = NULL;
        *(list->last ? list->last : &list->first) = job;
        list->last = &job->next;
}

struct job *job_take(struct job_list *list)
{
        struct job *job = list->first;
        if (job) {
                list->first = job->next;
                if (!list->first)
                        list->last = NULL;
                job->next = NULL;
        }
        return job;
}

void job_move(struct job_list *list, struct job_list *from)
{
        if (!from->first)
                return;
        *(list->last ? list->last : &list->first) = from->first;
        list->last = from->last;
        *from = (struct job_list){ 0 };
}
