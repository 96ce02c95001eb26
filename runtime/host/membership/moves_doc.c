/* moves_doc.c: the history of moves; see assign_doc.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/numbers.h"
#include "host/membership/assign_doc.h"
#include "host/membership/word_doc.h"

#define KIND "moves"

void moves_add(struct moves *moves, uint64_t at_ms, const struct assign_move *made, uint32_t count)
{
        if (count > MOVES_MAX) {
                made += count - MOVES_MAX;
                count = MOVES_MAX;
        }
        uint32_t kept = min_u64(moves->count, MOVES_MAX - count);
        memmove(moves->items, moves->items + (moves->count - kept), kept * sizeof(moves->items[0]));
        for (uint32_t i = 0; i < count; i++)
                moves->items[kept + i] = (struct moved){ .at_ms = at_ms, .move = made[i] };
        moves->count = kept + count;
}

static void put_owner(struct buffer *to, const struct assign_owner *owner)
{
        if (!owner->name[0]) {
                buffer_printf(to, "-");
                return;
        }
        word_doc_put_nonce(to, owner->nonce);
        buffer_printf(to, ":%s", owner->name);
}

void moves_doc_put(struct buffer *to, const struct moves *moves)
{
        word_doc_put_head(to, KIND, MOVES_DOC_VERSION);
        for (uint32_t i = 0; i < moves->count; i++) {
                const struct assign_move *move = &moves->items[i].move;
                buffer_printf(to, "%" PRIu64 " %" PRIu32 " ", moves->items[i].at_ms, move->shard);
                put_owner(to, &move->from);
                buffer_printf(to, " ");
                put_owner(to, &move->to);
                buffer_printf(to, " %" PRIu64 " %s\n", move->epoch, assign_reason_name(move->reason));
        }
}

/* Reads `NONCE:NAME`, or `-` for none. */
static int parse_owner(struct word_doc *doc, struct assign_owner *ret_owner)
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        memset(ret_owner, 0, sizeof(*ret_owner));
        if (span_is(word, SPAN_TEXT("-")))
                return 0;
        if (word.size <= NONCE_TEXT_MAX || word.data[NONCE_TEXT_MAX] != ':')
                return word_doc_bad(doc, "not a nonce, \":\" and a name");
        struct word_doc nonce = *doc, name = *doc;
        nonce.words = (struct span){ word.data, NONCE_TEXT_MAX };
        name.words = (struct span){ word.data + NONCE_TEXT_MAX + 1, word.size - NONCE_TEXT_MAX - 1 };
        r = word_doc_nonce(&nonce, ret_owner->nonce);
        return r ? r : word_doc_name(&name, ret_owner->name, sizeof(ret_owner->name));
}

static int parse_reason(struct word_doc *doc, enum assign_reason *ret_reason)
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        for (enum assign_reason reason = 0; reason < ASSIGN_REASONS; reason++) {
                const char *name = assign_reason_name(reason);
                if (span_is(word, (struct span){ name, strlen(name) })) {
                        *ret_reason = reason;
                        return 0;
                }
        }
        return word_doc_bad(doc, "not a reason");
}

static int parse_moved(struct word_doc *doc, struct moved *moved)
{
        uint64_t shard = 0;
        int r = word_doc_number(doc, TASK_NUMBER_MAX, &moved->at_ms);
        if (!r)
                r = word_doc_number(doc, SHARDS_MAX - 1, &shard);
        if (!r)
                r = parse_owner(doc, &moved->move.from);
        if (!r)
                r = parse_owner(doc, &moved->move.to);
        if (!r)
                r = word_doc_number(doc, TASK_NUMBER_MAX, &moved->move.epoch);
        if (!r)
                r = parse_reason(doc, &moved->move.reason);
        if (!r)
                r = word_doc_line_end(doc);
        if (!r)
                moved->move.shard = (uint32_t)shard;
        return r;
}

int moves_doc_parse(struct span text, struct moves *ret_moves, struct error *error)
{
        struct word_doc doc;
        struct moves moves = { 0 };
        int r = word_doc_open(&doc, KIND, MOVES_DOC_VERSION, text, MOVES_DOC_MAX, error);
        while (!r && word_doc_line(&doc)) {
                if (moves.count == MOVES_MAX)
                        r = word_doc_bad(&doc, "more than %u moves", MOVES_MAX);
                else
                        r = parse_moved(&doc, &moves.items[moves.count++]);
        }
        if (!r)
                r = word_doc_end(&doc);
        if (!r)
                *ret_moves = moves;
        return r;
}
