#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "coord/redis/redis_tree.h"

static void on_done(struct redis_command *command)
{
        struct tree_op *op = (struct tree_op *)command;
        op->is_out = false;
        if (op->answered)
                op->answered(op);
        else
                rtree_op_free(op);
}

struct tree_op *rtree_op_new(struct redis_tree *tree, enum tree_script script, void (*answered)(struct tree_op *op))
{
        struct tree_op *op = memory_zero(1, sizeof(*op));
        op->tree = tree;
        op->answered = answered;
        op->command.done = on_done;
        op->command.script = &tree->scripts.all[script];
        op->command.argv = op->argv;
        op->command.argv_size = op->sizes;
        (void)snprintf(op->number, sizeof(op->number), "%s", tree->number);
        rtree_op_text(op, "EVALSHA");
        rtree_op_word(op, (struct span){ op->command.script->sha, sizeof(op->command.script->sha) - 1 });
        rtree_op_text(op, "0");
        rtree_op_key(op, NULL, "");
        op->command.route = (struct span){ op->argv[3], op->sizes[3] };
        return op;
}

void rtree_op_word(struct tree_op *op, struct span word)
{
        struct span copy = arena_copy(&op->memory, word);
        int at = op->command.argc++;
        if (at >= OP_WORDS_MAX)
                abort();
        op->argv[at] = copy.data;
        op->sizes[at] = copy.size;
}

void rtree_op_text(struct tree_op *op, const char *text)
{
        rtree_op_word(op, (struct span){ text, strlen(text) });
}

void rtree_op_number(struct tree_op *op, uint64_t number)
{
        char text[24];
        (void)snprintf(text, sizeof(text), "%" PRIu64, number);
        rtree_op_text(op, text);
}

void rtree_op_key(struct tree_op *op, const char *kind, const char *path)
{
        struct buffer key = { 0 };
        buffer_printf(&key, "%s%s%s%s%s", op->tree->prefix, kind ? ":" : "", kind ? kind : "", kind ? ":" : "", path);
        rtree_op_word(op, (struct span){ (const char *)key.data, key.size });
        buffer_free(&key);
        /* EVALSHA sha COUNT key… */
        static const char *const counts[] = { "0", "1", "2", "3" };
        op->argv[2] = counts[op->command.argc - 3];
        op->sizes[2] = 1;
}

void rtree_op_send(struct tree_op *op, uint64_t deadline_ms)
{
        op->is_out = true;
        op->command.deadline_ms = deadline_ms ? deadline_ms : 1;
        redis_send(op->tree->redis, &op->command);
}

void rtree_op_forget(void *call)
{
        struct tree_op *op = call;
        struct redis_tree *tree = op->tree;
        op->request = NULL;
        op->answered = NULL;
        for (unsigned i = 0; i < 2; i++)
                rtree_watch_end(tree, op->watch[i], false);
        op->watch[0] = op->watch[1] = NULL;
        if (op->is_out)
                redis_cancel(&op->command);
        else
                rtree_op_free(op);
}

void rtree_op_free(struct tree_op *op)
{
        arena_free(op->memory);
        free(op);
}
