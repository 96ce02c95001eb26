#include "host/membership/assign_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "host/membership/word_doc.h"

#define KIND "assign"

/* --- writing ----------------------------------------------------------------------------------------------------- */

static bool is_alike(const struct assign_slot *a, const struct assign_slot *b)
{
        return a->owner == b->owner && a->epoch == b->epoch && a->is_firm == b->is_firm;
}

static void put_slots(struct buffer *to, const struct assignment *a)
{
        for (uint32_t first = 0, last; first < a->shards_count; first = last + 1) {
                const struct assign_slot *slot = &a->slots[first];
                for (last = first; last + 1 < a->shards_count && is_alike(slot, &a->slots[last + 1]);)
                        last++;
                buffer_printf(to, "%" PRIu32, first);
                if (last > first)
                        buffer_printf(to, "-%" PRIu32, last);
                if (slot->owner == ASSIGN_NOBODY)
                        buffer_printf(to, " -");
                else
                        buffer_printf(to, " %u", slot->owner);
                buffer_printf(to, " %" PRIu64 " %s\n", slot->epoch, slot->is_firm ? "firm" : "patient");
        }
}

int assign_doc_put(struct buffer *to, const struct assignment *a, struct error *error)
{
        size_t start = to->size;
        word_doc_put_head(to, KIND, ASSIGN_DOC_VERSION);
        buffer_printf(to, "generation %" PRIu64 "\nshards %" PRIu32 "\n", a->generation, a->shards_count);
        for (uint32_t i = 0; i < a->owners_count; i++) {
                buffer_printf(to, "owner %" PRIu32 " ", i);
                word_doc_put_nonce(to, a->owners[i].nonce);
                buffer_printf(to, " %s%s\n", a->owners[i].name, a->owners[i].is_draining ? " draining" : "");
        }
        for (uint32_t i = 0; i < a->givers_count; i++) {
                buffer_printf(to, "giver ");
                word_doc_put_nonce(to, a->givers[i].nonce);
                buffer_printf(to, "\n");
        }
        buffer_printf(to, "slots\n");
        put_slots(to, a);
        size_t size = to->size - start;
        if (size <= ASSIGN_DOC_MAX)
                return 0;
        to->size = start;
        return error_set(error, -E2BIG, KIND " document: %zu bytes, at most %u are possible", size, ASSIGN_DOC_MAX);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* The content of the lines before `slots`. */
struct head {
        uint64_t generation;
        uint64_t shards_count;
        struct assign_owner *owners;
        uint32_t owners_count;
        struct assign_giver *givers;
        uint32_t givers_count;
};

static int parse_owner(struct word_doc *doc, struct head *head)
{
        struct assign_owner owner = { 0 };
        uint64_t index = 0;
        int r = word_doc_number(doc, ASSIGN_MEMBERS_MAX - 1, &index);
        if (!r && index != head->owners_count)
                r = word_doc_bad(doc, "owner %" PRIu64 " where %" PRIu32 " follows", index, head->owners_count);
        if (!r)
                r = word_doc_nonce(doc, owner.nonce);
        if (!r && index && memcmp(head->owners[index - 1].nonce, owner.nonce, STORE_NONCE_SIZE) >= 0)
                r = word_doc_bad(doc, "owners do not stand by nonce, each once");
        if (!r)
                r = word_doc_name(doc, owner.name, sizeof(owner.name));
        if (!r && doc->words.size) {
                struct span word = { 0 };
                r = word_doc_word(doc, &word);
                owner.is_draining = true;
                if (!r && !span_is(word, SPAN_TEXT("draining")))
                        r = word_doc_bad(doc, "not \"draining\"");
        }
        if (!r)
                r = word_doc_line_end(doc);
        if (r)
                return r;
        head->owners = array_grow(head->owners, head->owners_count, sizeof(owner));
        head->owners[head->owners_count++] = owner;
        return 0;
}

static int parse_giver(struct word_doc *doc, struct head *head)
{
        struct assign_giver giver = { 0 };
        uint32_t count = head->givers_count;
        int r = word_doc_nonce(doc, giver.nonce);
        if (!r)
                r = word_doc_line_end(doc);
        if (!r && count && memcmp(head->givers[count - 1].nonce, giver.nonce, STORE_NONCE_SIZE) >= 0)
                r = word_doc_bad(doc, "givers do not stand by nonce, each once");
        if (!r && count == ASSIGN_MEMBERS_MAX)
                r = word_doc_bad(doc, "more givers than members are possible");
        if (r)
                return r;
        head->givers = array_grow(head->givers, count, sizeof(giver));
        head->givers[head->givers_count++] = giver;
        return 0;
}

static int parse_once(struct word_doc *doc, uint64_t max, uint64_t *ret_number)
{
        uint64_t number = 0;
        int r = word_doc_number(doc, max, &number);
        if (!r)
                r = word_doc_line_end(doc);
        if (!r && (*ret_number || !number))
                r = word_doc_bad(doc, *ret_number ? "said twice" : "0 is not possible");
        if (!r)
                *ret_number = number;
        return r;
}

/* Reads the lines up to and including `slots`. */
static int parse_head(struct word_doc *doc, struct head *head)
{
        int r = 0;
        while (!r && word_doc_line(doc)) {
                struct span word = { 0 };
                r = word_doc_word(doc, &word);
                if (r)
                        return r;
                if (span_is(word, SPAN_TEXT("generation")))
                        r = parse_once(doc, TASK_NUMBER_MAX, &head->generation);
                else if (span_is(word, SPAN_TEXT("shards")))
                        r = parse_once(doc, SHARDS_MAX, &head->shards_count);
                else if (span_is(word, SPAN_TEXT("owner")))
                        r = parse_owner(doc, head);
                else if (span_is(word, SPAN_TEXT("giver")))
                        r = parse_giver(doc, head);
                else if (span_is(word, SPAN_TEXT("slots")))
                        return head->generation && head->shards_count && !doc->words.size
                                       ? 0
                                       : word_doc_bad(doc, "slots before generation and shards, or with more words");
        }
        return r ? r : word_doc_bad(doc, "no slots");
}

/* Reads the range of shards that the line begins with, `7` or `7-9`; it must start at `next`. */
static int parse_range(struct word_doc *doc, uint32_t next, uint32_t shards_count, uint32_t *ret_last)
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        const char *dash = memchr(word.data, '-', word.size);
        struct span first_text = { word.data, dash ? (size_t)(dash - word.data) : word.size };
        uint64_t first, last;
        if (!word_doc_parse_number(first_text, shards_count - 1, &first) || first != next)
                return word_doc_bad(doc, "not shard %" PRIu32 ", which follows", next);
        last = first;
        if (dash) {
                struct span last_text = { dash + 1, word.size - first_text.size - 1 };
                if (!word_doc_parse_number(last_text, shards_count - 1, &last) || last <= first)
                        return word_doc_bad(
                                doc, "a range that does not end above its first and below %" PRIu32, shards_count);
        }
        *ret_last = (uint32_t)last;
        return 0;
}

static int parse_slot(struct word_doc *doc, const struct assignment *a, struct assign_slot *ret_slot)
{
        struct span owner = { 0 }, want = { 0 };
        uint64_t index = ASSIGN_NOBODY, epoch = 0;
        int r = word_doc_word(doc, &owner);
        if (!r && !span_is(owner, SPAN_TEXT("-")) &&
                (!a->owners_count || !word_doc_parse_number(owner, a->owners_count - 1, &index)))
                r = word_doc_bad(doc, "there is no such owner");
        if (!r)
                r = word_doc_number(doc, a->generation, &epoch);
        if (!r)
                r = word_doc_word(doc, &want);
        if (!r && !span_is(want, SPAN_TEXT("firm")) && !span_is(want, SPAN_TEXT("patient")))
                r = word_doc_bad(doc, "neither \"firm\" nor \"patient\"");
        if (!r)
                r = word_doc_line_end(doc);
        if (r)
                return r;
        *ret_slot = (struct assign_slot){
                .owner = (uint16_t)index, .epoch = epoch, .is_firm = span_is(want, SPAN_TEXT("firm"))
        };
        return 0;
}

static int parse_slots(struct word_doc *doc, struct assignment *a)
{
        uint32_t next = 0;
        while (next < a->shards_count) {
                struct assign_slot slot;
                uint32_t last = next;
                if (!word_doc_line(doc))
                        return word_doc_bad(doc, "shard %" PRIu32 " is missing", next);
                int r = parse_range(doc, next, a->shards_count, &last);
                if (!r)
                        r = parse_slot(doc, a, &slot);
                if (r)
                        return r;
                while (next <= last)
                        a->slots[next++] = slot;
        }
        return word_doc_end(doc);
}

int assign_doc_parse(struct span text, struct assignment *ret_assignment, struct error *error)
{
        struct word_doc doc;
        struct head head = { 0 };
        struct assignment a = { 0 };
        int r = word_doc_open(&doc, KIND, ASSIGN_DOC_VERSION, text, ASSIGN_DOC_MAX, error);
        if (!r)
                r = parse_head(&doc, &head);
        if (!r) {
                assignment_init(&a, (uint32_t)head.shards_count, head.owners_count, head.givers_count);
                a.generation = head.generation;
                if (head.owners_count)
                        memcpy(a.owners, head.owners, head.owners_count * sizeof(a.owners[0]));
                if (head.givers_count)
                        memcpy(a.givers, head.givers, head.givers_count * sizeof(a.givers[0]));
                r = parse_slots(&doc, &a);
        }
        if (!r)
                *ret_assignment = a;
        else
                assignment_free(&a);
        free(head.owners);
        free(head.givers);
        return r;
}
