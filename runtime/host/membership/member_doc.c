#include "host/membership/member_doc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/names.h"
#include "host/membership/word_doc.h"

#define KIND       "member"
#define NO_VERSION "-"

/* --- writing ----------------------------------------------------------------------------------------------------- */

void member_doc_add_handler(struct member_doc *doc, const char *name, const char *version)
{
        if (doc->handlers_count == MEMBER_HANDLERS_MAX)
                return;
        struct member_handler *handler = &doc->handlers[doc->handlers_count++];
        (void)snprintf(handler->name, sizeof(handler->name), "%s", name);
        (void)snprintf(handler->version, sizeof(handler->version), "%s", version);
        for (char *c = handler->version; *c; c++)
                if (!isgraph((unsigned char)*c))
                        *c = '_';
}

void member_doc_add_features(struct member_doc *doc)
{
        for (size_t i = 0; i < store_features_count && doc->features_count < STORE_FEATURES_MAX; i++)
                (void)snprintf(
                        doc->features[doc->features_count++], sizeof(doc->features[0]), "%s", store_features[i].name);
}

bool member_doc_knows(const struct member_doc *doc, const char *feature)
{
        for (uint32_t i = 0; i < doc->features_count; i++)
                if (!strcmp(doc->features[i], feature))
                        return true;
        return false;
}

void member_doc_add_stale(struct member_doc *doc, uint32_t shard, uint64_t epoch)
{
        uint32_t i = 0;
        while (i < doc->stale_count && doc->stale[i].shard != shard)
                i++;
        if (i == MEMBER_STALE_MAX)
                return;
        if (i == doc->stale_count)
                doc->stale_count++;
        doc->stale[i] = (struct assign_stale){ .shard = shard, .epoch = epoch };
}

void member_doc_put(struct buffer *to, const struct member_doc *doc)
{
        const struct assign_member *member = &doc->member;
        word_doc_put_head(to, KIND, MEMBER_DOC_VERSION);
        buffer_printf(to, "name %s\nnonce ", member->name);
        word_doc_put_nonce(to, member->nonce);
        buffer_printf(to, "\nweight %" PRIu32 "\nstate %s\nsees_store %s\n", member->weight,
                member->is_draining ? "draining" : "active", member->sees_store ? "yes" : "no");
        for (uint32_t i = 0; i < doc->handlers_count; i++)
                buffer_printf(to, "handler %s %s\n", doc->handlers[i].name,
                        doc->handlers[i].version[0] ? doc->handlers[i].version : NO_VERSION);
        for (uint32_t i = 0; i < doc->features_count; i++)
                buffer_printf(to, "feature %s\n", doc->features[i]);
        for (uint32_t i = 0; i < doc->stale_count; i++)
                buffer_printf(to, "stale %" PRIu32 " %" PRIu64 "\n", doc->stale[i].shard, doc->stale[i].epoch);
        if (member->load.is_known)
                buffer_printf(to, "load %" PRIu32 "\n", member->load.total);
        for (uint32_t i = 0; i < member->load.busy_count; i++)
                buffer_printf(
                        to, "busy %" PRIu32 " %" PRIu32 "\n", member->load.busy[i].shard, member->load.busy[i].load);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Reads one of two words; *ret_is_first is set to whether it was the first. */
static int parse_either(struct word_doc *doc, const char *first, const char *second, bool *ret_is_first)
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        *ret_is_first = span_is(word, (struct span){ first, strlen(first) });
        if (*ret_is_first || span_is(word, (struct span){ second, strlen(second) }))
                return 0;
        return word_doc_bad(doc, "neither \"%s\" nor \"%s\"", first, second);
}

static int parse_name(struct word_doc *doc, struct member_doc *to)
{
        return word_doc_name(doc, to->member.name, sizeof(to->member.name));
}

static int parse_nonce(struct word_doc *doc, struct member_doc *to)
{
        return word_doc_nonce(doc, to->member.nonce);
}

static int parse_weight(struct word_doc *doc, struct member_doc *to)
{
        uint64_t weight = 0;
        int r = word_doc_number(doc, ASSIGN_WEIGHT_MAX, &weight);
        to->member.weight = (uint32_t)weight;
        return r;
}

static int parse_state(struct word_doc *doc, struct member_doc *to)
{
        return parse_either(doc, "draining", "active", &to->member.is_draining);
}

static int parse_sees_store(struct word_doc *doc, struct member_doc *to)
{
        return parse_either(doc, "yes", "no", &to->member.sees_store);
}

static int parse_handler(struct word_doc *doc, struct member_doc *to)
{
        struct error why;
        if (to->handlers_count == MEMBER_HANDLERS_MAX)
                return word_doc_bad(doc, "more than %u handlers", MEMBER_HANDLERS_MAX);
        struct member_handler *handler = &to->handlers[to->handlers_count++];
        int r = word_doc_text(doc, handler->name, TASK_HANDLER_MAX);
        if (!r && name_check_handler(handler->name, &why))
                r = word_doc_bad(doc, "%s", why.text);
        if (!r)
                r = word_doc_text(doc, handler->version, MEMBER_VERSION_MAX);
        if (!r && !strcmp(handler->version, NO_VERSION))
                handler->version[0] = 0;
        return r;
}

static int parse_feature(struct word_doc *doc, struct member_doc *to)
{
        if (to->features_count == STORE_FEATURES_MAX)
                return word_doc_bad(doc, "more than %u features", STORE_FEATURES_MAX);
        return word_doc_text(doc, to->features[to->features_count++], STORE_FEATURE_NAME_MAX);
}

static int parse_stale(struct word_doc *doc, struct member_doc *to)
{
        uint64_t shard = 0, epoch = 0;
        if (to->stale_count == MEMBER_STALE_MAX)
                return word_doc_bad(doc, "more than %u stale shards", MEMBER_STALE_MAX);
        int r = word_doc_number(doc, SHARDS_MAX - 1, &shard);
        if (!r)
                r = word_doc_number(doc, TASK_NUMBER_MAX, &epoch);
        if (!r)
                to->stale[to->stale_count++] = (struct assign_stale){ .shard = (uint32_t)shard, .epoch = epoch };
        return r;
}

static int parse_load(struct word_doc *doc, struct member_doc *to)
{
        uint64_t total = 0;
        int r = word_doc_number(doc, LOAD_MAX, &total);
        if (!r && to->member.load.is_known)
                r = word_doc_bad(doc, "load is said twice");
        to->member.load.is_known = true;
        to->member.load.total = (uint32_t)total;
        return r;
}

static int parse_busy(struct word_doc *doc, struct member_doc *to)
{
        struct load_summary *load = &to->member.load;
        uint64_t shard = 0, one = 0;
        if (load->busy_count == LOAD_BUSY_MAX)
                return word_doc_bad(doc, "more than %u busy shards", LOAD_BUSY_MAX);
        int r = word_doc_number(doc, SHARDS_MAX - 1, &shard);
        if (!r)
                r = word_doc_number(doc, LOAD_MAX, &one);
        if (!r && load->busy_count && load->busy[load->busy_count - 1].shard >= shard)
                r = word_doc_bad(doc, "busy shards do not stand by number, each once");
        if (!r)
                load->busy[load->busy_count++] = (struct load_shard){ .shard = (uint32_t)shard, .load = (uint32_t)one };
        return r;
}

static const struct member_field {
        const char *name;
        bool is_once; /* the line is required and must not be repeated */
        int (*parse)(struct word_doc *doc, struct member_doc *to);
} fields[] = {
        { "name", true, parse_name },
        { "nonce", true, parse_nonce },
        { "weight", true, parse_weight },
        { "state", true, parse_state },
        { "sees_store", true, parse_sees_store },
        { "handler", false, parse_handler },
        { "feature", false, parse_feature },
        { "stale", false, parse_stale },
        { "load", false, parse_load },
        { "busy", false, parse_busy },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static int parse_line(struct word_doc *doc, struct member_doc *to, bool is_said[FIELDS])
{
        struct span word = { 0 };
        int r = word_doc_word(doc, &word);
        if (r)
                return r;
        for (size_t i = 0; i < FIELDS; i++) {
                if (!span_is(word, (struct span){ fields[i].name, strlen(fields[i].name) }))
                        continue;
                if (fields[i].is_once && is_said[i])
                        return word_doc_bad(doc, "%s is said twice", fields[i].name);
                is_said[i] = true;
                r = fields[i].parse(doc, to);
                return r ? r : word_doc_line_end(doc);
        }
        return 0;
}

int member_doc_parse(struct span text, struct member_doc *ret_doc, struct error *error)
{
        struct word_doc doc;
        bool is_said[FIELDS] = { 0 };
        struct member_doc member = { 0 };
        int r = word_doc_open(&doc, KIND, MEMBER_DOC_VERSION, text, MEMBER_DOC_MAX, error);
        while (!r && word_doc_line(&doc))
                r = parse_line(&doc, &member, is_said);
        if (!r)
                r = word_doc_end(&doc);
        for (size_t i = 0; !r && i < FIELDS; i++)
                if (fields[i].is_once && !is_said[i])
                        r = word_doc_bad(&doc, "%s is missing", fields[i].name);
        if (!r)
                *ret_doc = member;
        return r;
}
