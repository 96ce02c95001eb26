/* Any documents in the nodes of a fleet, nearly right more often than not: members, the assignment, the history of
 * moves, one after the other while somebody leads.  What the leader then writes can be read by everybody, and it comes
 * to an end. */
#include <inttypes.h>
#include <string.h>

#include "choices.h"
#include "host/membership/assigner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SHARDS 8

/* Few, so that they meet again. */
static void put_nonce(struct buffer *b, struct choices *c)
{
        buffer_printf(b, "%032x", choose(c, 4));
}

static void put_count(struct buffer *b, struct choices *c, unsigned below)
{
        buffer_printf(b, "%" PRIu64, choose(c, 8) ? choose(c, below) : choose_number(c));
}

static void put_member(struct buffer *b, struct choices *c)
{
        buffer_printf(b, "quiver-member %u\nname %c\nnonce ", choose(c, 32) ? 1 : 2, 'a' + (int)choose(c, 4));
        put_nonce(b, c);
        buffer_printf(b, "\nweight ");
        put_count(b, c, 4);
        buffer_printf(
                b, "\nstate %s\nsees_store %s\n", choose(c, 4) ? "active" : "draining", choose(c, 4) ? "yes" : "no");
        for (unsigned n = choose(c, 3); n; n--) {
                buffer_printf(b, "stale ");
                put_count(b, c, SHARDS + 1);
                buffer_printf(b, " ");
                put_count(b, c, 200);
                buffer_printf(b, "\n");
        }
}

static void put_assign(struct buffer *b, struct choices *c)
{
        unsigned owners = choose(c, 4), shards = choose(c, 8) ? SHARDS : choose(c, 10);
        buffer_printf(b, "quiver-assign %u\ngeneration ", choose(c, 32) ? 1 : 2);
        put_count(b, c, 250);
        buffer_printf(b, "\nshards %u\n", shards);
        for (unsigned i = 0; i < owners; i++)
                buffer_printf(b, "owner %u %032x %c%s\n", i, i, 'a' + (int)i, choose(c, 4) ? "" : " draining");
        buffer_printf(b, "slots\n");
        for (unsigned i = 0; i < shards; i++) {
                if (choose(c, 4))
                        buffer_printf(b, "%u %u ", i, choose(c, owners + 1));
                else
                        buffer_printf(b, "%u - ", i);
                put_count(b, c, 250);
                buffer_printf(b, " %s\n", choose(c, 2) ? "firm" : "patient");
        }
}

static void put_moves(struct buffer *b, struct choices *c)
{
        buffer_printf(b, "quiver-moves 1\n");
        for (unsigned n = choose(c, 4); n; n--) {
                put_count(b, c, 100);
                buffer_printf(b, " %u - ", choose(c, SHARDS));
                put_nonce(b, c);
                buffer_printf(b, ":x ");
                put_count(b, c, 100);
                buffer_printf(b, " join\n");
        }
}

/* A byte changed, or the end cut off. */
static struct span spoil(struct buffer *b, struct choices *c)
{
        if (!choose(c, 6) && b->size)
                b->data[choose_number(c) % b->size] = choose_byte(c);
        if (!choose(c, 16) && b->size)
                b->size -= choose_byte(c) % b->size;
        return (struct span){ (const char *)b->data, b->size };
}

struct scene {
        struct assigner assigner;
        struct buffer assign, moves; /* what stands in the tree */
        bool exists;
        uint64_t now_ms;
};

/* Until it has nothing more to say: in so many rounds every shard has moved several times. */
static void lead(struct scene *s)
{
        struct error error;
        struct buffer assign = { 0 }, moves = { 0 };
        unsigned rounds = 0;
        for (; rounds < 64; rounds++) {
                if (assigner_wants_read(&s->assigner))
                        (void)assigner_read(&s->assigner, s->exists,
                                (struct span){ (const char *)s->assign.data, s->assign.size }, 0,
                                (struct span){ (const char *)s->moves.data, s->moves.size }, s->now_ms, &error);
                uint64_t due_ms = assigner_due_ms(&s->assigner);
                if (due_ms == UINT64_MAX)
                        break;
                s->now_ms = due_ms > s->now_ms ? due_ms : s->now_ms;
                if (!assigner_plan(&s->assigner, s->now_ms, 100000, &assign, &moves))
                        continue;
                struct assignment read = { 0 };
                struct moves history;
                demand(assign_doc_parse((struct span){ (const char *)assign.data, assign.size }, &read, &error) == 0);
                demand(moves_doc_parse((struct span){ (const char *)moves.data, moves.size }, &history, &error) == 0);
                demand(read.shards_count == SHARDS);
                assignment_free(&read);
                assigner_wrote(&s->assigner, 0, rounds, s->now_ms);
                s->exists = true;
        }
        demand(rounds < 64);
        buffer_free(&assign);
        buffer_free(&moves);
}

static void one_event(struct scene *s, struct choices *c)
{
        char node[2] = { (char)('p' + choose(c, 4)), 0 };
        struct buffer text = { 0 };
        struct error error = { "" };
        switch (choose(c, 8)) {
        case 0:
                assigner_left(&s->assigner, node, s->now_ms);
                break;
        case 1:
                buffer_clear(&s->assign);
                buffer_clear(&s->moves);
                put_assign(&s->assign, c);
                put_moves(&s->moves, c);
                (void)spoil(&s->assign, c);
                (void)spoil(&s->moves, c);
                s->exists = choose(c, 8);
                assigner_saw(&s->assigner, 0, s->now_ms);
                break;
        case 2:
                assigner_lead(&s->assigner, choose(c, 8), s->now_ms);
                break;
        default:
                put_member(&text, c);
                if (assigner_member(&s->assigner, node, 1 + choose(c, 8), spoil(&text, c), s->now_ms, &error) < 0)
                        demand(error.text[0]);
                break;
        }
        buffer_free(&text);
        s->now_ms++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct choices c = { data, size };
        static struct scene s;
        s = (struct scene){ .now_ms = 1000 };
        assigner_init(&s.assigner, SHARDS, choose(&c, 2) ? 0 : 2);
        assigner_lead(&s.assigner, true, s.now_ms);
        assigner_know(&s.assigner, true, s.now_ms);
        while (c.size) {
                one_event(&s, &c);
                if (choose(&c, 2))
                        lead(&s);
        }
        lead(&s);
        assigner_free(&s.assigner);
        buffer_free(&s.assign);
        buffer_free(&s.moves);
        return 0;
}
