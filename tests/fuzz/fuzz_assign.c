/* Any bytes as one of the documents of the coordination tree, as they are and below the first line: an answer, and what
 * is accepted is written and read again as the same.  An assignment also goes through assign_plan(), which may trust
 * whatever was accepted. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/membership/assign_doc.h"
#include "host/membership/member_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

static bool is_same(struct buffer *a, struct buffer *b)
{
        return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

static struct span span_of(const struct buffer *b)
{
        return (struct span){ (const char *)b->data, b->size };
}

/* Half of the owners are members still, and one is new. */
static void plan(const struct assignment *a)
{
        struct assign_member members[9] = { { .weight = 1, .sees_store = true, .name = "new" } };
        struct assign_input input = { .members = members, .members_count = 1, .shards_count = a->shards_count };
        struct assign_plan made;
        memset(members[0].nonce, 0x5a, sizeof(members[0].nonce));
        for (uint32_t i = 0; i < a->owners_count && input.members_count < 9; i += 2) {
                struct assign_member *m = &members[input.members_count++];
                memcpy(m->nonce, a->owners[i].nonce, sizeof(m->nonce));
                memcpy(m->name, a->owners[i].name, sizeof(m->name));
                m->weight = i % 3;
                m->is_draining = i % 5 == 4;
                m->sees_store = i % 7 != 6;
        }
        input.may_plan = a->generation % 2;
        if (assign_plan(a, &input, &made, NULL))
                return;
        for (uint32_t shard = 0; shard < a->shards_count; shard++)
                demand(made.next.slots[shard].epoch >= a->slots[shard].epoch);
        assign_plan_free(&made);
}

/* What a member says of its load is given to two owners of a small assignment. */
static void even_out(const struct load_summary *load)
{
        enum { SHARDS = 16 };
        static const uint32_t resting[] = { 3, 7, 4095, UINT32_MAX };
        struct assignment a;
        struct assign_member members[2] = { { .weight = 1, .sees_store = true, .name = "a", .load = *load },
                { .weight = 3, .sees_store = true, .name = "b", .load = *load } };
        struct assign_input input = { .members = members,
                .members_count = 2,
                .shards_count = SHARDS,
                .may_plan = true,
                .may_even = true,
                .resting = resting,
                .resting_count = 4 };
        struct assign_plan first, made;
        members[1].nonce[0] = 1;
        members[1].load.total /= 2;
        demand(assign_plan(NULL, &input, &first, NULL) == 0);
        a = first.next;
        demand(assign_plan(&a, &input, &made, NULL) == 0);
        demand(made.moves_count == 0 || made.moves_count == 2);
        assign_plan_free(&made);
        assign_plan_free(&first);
}

static void assignment(struct span text)
{
        struct assignment a, back;
        struct buffer once = { 0 }, twice = { 0 };
        struct error error = { 0 };
        if (assign_doc_parse(text, &a, &error)) {
                demand(error.text[0]);
                return;
        }
        demand(assign_doc_put(&once, &a, NULL) == 0);
        demand(assign_doc_parse(span_of(&once), &back, NULL) == 0);
        demand(assign_doc_put(&twice, &back, NULL) == 0);
        demand(is_same(&once, &twice));
        plan(&a);
        assignment_free(&a);
        assignment_free(&back);
        buffer_free(&once);
        buffer_free(&twice);
}

static void member(struct span text)
{
        static struct member_doc doc, back;
        struct buffer once = { 0 }, twice = { 0 };
        if (member_doc_parse(text, &doc, NULL))
                return;
        member_doc_put(&once, &doc);
        demand(member_doc_parse(span_of(&once), &back, NULL) == 0);
        member_doc_put(&twice, &back);
        demand(is_same(&once, &twice));
        even_out(&doc.member.load);
        buffer_free(&once);
        buffer_free(&twice);
}

static void history(struct span text)
{
        static struct moves moves, back;
        struct buffer once = { 0 }, twice = { 0 };
        if (moves_doc_parse(text, &moves, NULL))
                return;
        moves_doc_put(&once, &moves);
        demand(moves_doc_parse(span_of(&once), &back, NULL) == 0);
        moves_doc_put(&twice, &back);
        demand(is_same(&once, &twice));
        buffer_free(&once);
        buffer_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct {
                const char *head;
                void (*check)(struct span text);
        } kinds[] = {
                { "quiver-assign 1\n", assignment },
                { "quiver-member 1\n", member },
                { "quiver-moves 1\n", history },
        };
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                struct buffer text = { 0 };
                kinds[i].check((struct span){ (const char *)data, size });
                buffer_printf(&text, "%s", kinds[i].head);
                buffer_put(&text, data, size);
                kinds[i].check(span_of(&text));
                buffer_free(&text);
        }
        return 0;
}
