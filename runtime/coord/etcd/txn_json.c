/* txn_json.c: transactions as JSON, and their answers. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "coord/etcd/reply.h"
#include "coord/etcd/txn_private.h"

#define SEQUENCE_TEXT_MAX 32u

/* --- comparing --------------------------------------------------------------------------------------------------- */

static void next_item(struct buffer *body)
{
        if (body->data[body->size - 1] != '[')
                buffer_put(body, ",", 1);
}

static void put_compare(
        struct buffer *body, const struct buffer *key, const char *what, const char *result, uint64_t number)
{
        static const struct {
                const char *target, *field;
        } targets[] = {
                { "CREATE", "create_revision" },
                { "VERSION", "version" },
                { "LEASE", "lease" },
                { "MOD", "mod_revision" },
        };
        size_t i = 0;
        while (strcmp(targets[i].target, what) != 0)
                i++;
        next_item(body);
        buffer_printf(body, "{\"target\":\"%s\",\"result\":\"%s\",\"%s\":\"%" PRIu64 "\"", what, result,
                targets[i].field, number);
        etcd_put_key(body, "key", key);
        buffer_put(body, "}", 1);
}

/* Compares that no key is in [from, to). */
static void put_nothing(struct buffer *body, const struct buffer *from, const struct buffer *to)
{
        next_item(body);
        buffer_printf(body, "{\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"");
        etcd_put_key(body, "key", from);
        etcd_put_key(body, "range_end", to);
        buffer_put(body, "}", 1);
}

static int compare_texts(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Compares that the node has no children except those that are deleted as well: nothing before, between and after
 * them. */
static void put_empty(const struct etcd_txn *txn, const struct txn_node *node, struct buffer *body)
{
        struct buffer from = { 0 }, to = { 0 };
        if (node->spared.count)
                qsort(node->spared.items, node->spared.count, sizeof(char *), compare_texts);
        etcd_name_children(&from, txn->prefix, node->path);
        for (size_t i = 0; i < node->spared.count; i++) {
                buffer_clear(&to);
                etcd_name_children(&to, txn->prefix, node->path);
                buffer_printf(&to, "%s", node->spared.items[i]);
                put_nothing(body, &from, &to);
                buffer_clear(&from);
                buffer_put(&from, to.data, to.size);
                buffer_put(&from, "", 1); /* the first key after it */
        }
        buffer_clear(&to);
        etcd_name_children(&to, txn->prefix, node->path);
        etcd_name_end(&to);
        put_nothing(body, &from, &to);
        buffer_free(&from);
        buffer_free(&to);
}

static void put_node_compares(const struct etcd_txn *txn, const struct txn_node *node, struct buffer *body)
{
        struct buffer key = { 0 };
        etcd_name_node(&key, txn->prefix, node->path);
        if (node->must_be_absent)
                put_compare(body, &key, "CREATE", "EQUAL", 0);
        if (node->must_have_version)
                put_compare(body, &key, "VERSION", "EQUAL", min_u64(node->must_version, ETCD_NUMBER_MAX - 1) + 1);
        else if (node->must_be_there)
                put_compare(body, &key, "CREATE", "GREATER", 0);
        if (node->must_be_permanent)
                put_compare(body, &key, "LEASE", "EQUAL", 0);
        if (node->must_be_empty)
                put_empty(txn, node, body);
        buffer_free(&key);
}

static void put_compares(const struct etcd_txn *txn, struct buffer *body)
{
        struct buffer key = { 0 };
        buffer_printf(body, "\"compare\":[");
        if (txn->lease) {
                etcd_name_session(&key, txn->prefix, txn->lease);
                put_compare(body, &key, "CREATE", "GREATER", 0);
        }
        for (unsigned i = 0; i < txn->nodes_count; i++)
                put_node_compares(txn, txn->nodes[i], body);
        if (txn->is_sequential) {
                buffer_clear(&key);
                etcd_name_sequence(&key, txn->prefix, txn->parent);
                put_compare(body, &key, "MOD", "EQUAL", txn->sequence_seen == TXN_THERE ? txn->sequence_changed : 0);
        }
        buffer_printf(body, "]");
        buffer_free(&key);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

/* A set keeps the lease of the key. */
static void put_put(struct etcd_txn *txn, const struct buffer *key, struct span data, uint64_t lease, bool is_new,
        struct buffer *body)
{
        next_item(body);
        buffer_printf(body, "{\"request_put\":{");
        etcd_put_key(body, "key", key);
        etcd_put_bytes(body, "value", data.data, data.size);
        if (!is_new)
                buffer_printf(body, ",\"ignore_lease\":true");
        else if (lease)
                buffer_printf(body, ",\"lease\":\"%" PRIu64 "\"", lease);
        buffer_printf(body, "}}");
        txn->writes_count++;
}

static void put_delete(struct etcd_txn *txn, const struct buffer *key, struct buffer *body)
{
        next_item(body);
        buffer_printf(body, "{\"request_delete_range\":{");
        etcd_put_key(body, "key", key);
        buffer_printf(body, "}}");
        txn->writes_count++;
}

static void put_write(struct etcd_txn *txn, const struct txn_node *node, struct buffer *body)
{
        struct buffer key = { 0 };
        etcd_name_node(&key, txn->prefix, node->path);
        if (node->is_made || (node->sets && !node->is_deleted)) {
                put_put(txn, &key, node->data, node->owner, node->is_made, body);
        } else if (node->is_deleted) {
                put_delete(txn, &key, body);
                buffer_clear(&key);
                etcd_name_sequence(&key, txn->prefix, node->path);
                put_delete(txn, &key, body);
        }
        buffer_free(&key);
}

static void put_sequence(struct etcd_txn *txn, struct buffer *body)
{
        struct buffer key = { 0 }, next = { 0 };
        etcd_name_sequence(&key, txn->prefix, txn->parent);
        buffer_printf(&next, "%" PRIu64, txn->sequence + 1);
        put_put(txn, &key, (struct span){ (const char *)next.data, next.size }, 0, true, body);
        buffer_free(&key);
        buffer_free(&next);
}

static void put_range(struct buffer *body, const struct buffer *key, const char *more)
{
        next_item(body);
        buffer_printf(body, "{\"request_range\":{");
        etcd_put_key(body, "key", key);
        buffer_printf(body, "%s}}", more);
}

/* Reads the operations' nodes as they are afterwards. */
static void put_results(struct etcd_txn *txn, struct buffer *body)
{
        struct buffer key = { 0 };
        for (unsigned i = 0; i < txn->ops_count; i++) {
                const char *path = txn->is_sequential ? txn->made : txn->ops[i].path;
                txn->ops[i].has_stat = !txn_look(txn, path)->is_deleted;
                if (!txn->ops[i].has_stat)
                        continue;
                buffer_clear(&key);
                etcd_name_node(&key, txn->prefix, path);
                put_range(body, &key, ",\"keys_only\":true");
        }
        buffer_free(&key);
}

static void put_writes(struct etcd_txn *txn, struct buffer *body)
{
        txn->writes_count = 0;
        buffer_printf(body, ",\"success\":[");
        for (unsigned i = 0; i < txn->nodes_count; i++)
                put_write(txn, txn->nodes[i], body);
        if (txn->is_sequential)
                put_sequence(txn, body);
        put_results(txn, body);
        buffer_printf(body, "]");
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

static void put_read(struct etcd_txn *txn, enum txn_read_kind kind, struct txn_node *node, struct buffer *body)
{
        struct buffer key = { 0 }, more = { 0 };
        txn->reads[txn->reads_count++] = (struct txn_read){ kind, node };
        buffer_printf(&more, kind == TXN_READ_SEQUENCE ? "" : ",\"keys_only\":true");
        if (kind == TXN_READ_SESSION) {
                etcd_name_session(&key, txn->prefix, txn->lease);
        } else if (kind == TXN_READ_NODE) {
                etcd_name_node(&key, txn->prefix, node->path);
        } else if (kind == TXN_READ_SEQUENCE) {
                etcd_name_sequence(&key, txn->prefix, txn->parent);
        } else {
                struct buffer end = { 0 };
                const char *path = node ? node->path : txn->parent;
                etcd_name_children(&key, txn->prefix, path);
                etcd_name_children(&end, txn->prefix, path);
                etcd_name_end(&end);
                etcd_put_key(&more, "range_end", &end);
                if (kind == TXN_READ_CHILDREN)
                        buffer_printf(&more, ",\"limit\":\"%u\"", TXN_CHILDREN_READ);
                buffer_free(&end);
        }
        put_range(body, &key, buffer_text(&more));
        buffer_free(&key);
        buffer_free(&more);
}

static void put_reads(struct etcd_txn *txn, const char *branch, struct buffer *body)
{
        txn->reads_count = 0;
        buffer_printf(body, "%s\"%s\":[", branch[0] == 'f' ? "," : "", branch);
        if (txn->lease)
                put_read(txn, TXN_READ_SESSION, NULL, body);
        for (unsigned i = 0; i < txn->nodes_count; i++)
                put_read(txn, TXN_READ_NODE, txn->nodes[i], body);
        for (unsigned i = 0; i < txn->nodes_count; i++)
                if (txn->nodes[i]->must_be_empty)
                        put_read(txn, TXN_READ_CHILDREN, txn->nodes[i], body);
        if (txn->is_sequential) {
                bool wants_names = txn->wants_names || (txn->sequence_seen != TXN_UNREAD && !txn->has_sequence);
                put_read(txn, TXN_READ_SEQUENCE, NULL, body);
                if (wants_names)
                        put_read(txn, TXN_READ_NAMES, NULL, body);
        }
        buffer_printf(body, "]");
}

void etcd_txn_build(struct etcd_txn *txn, uint64_t lease, struct buffer *body)
{
        txn->lease = lease;
        txn->only_reads = txn_simulate(txn) || txn_must_read(txn);
        buffer_printf(body, "{");
        if (txn->only_reads) {
                put_reads(txn, "success", body);
        } else {
                put_compares(txn, body);
                put_writes(txn, body);
                put_reads(txn, "failure", body);
        }
        buffer_printf(body, "}");
}

/* --- answers ----------------------------------------------------------------------------------------------------- */

/* The kvs of the range at that index; NULL: no kvs.  An empty range has no list. */
static const json_t *range_at(const json_t *responses, size_t at, bool *ret_is_range)
{
        const json_t *range = json_object_get(json_array_get(responses, at), "response_range");
        const json_t *kvs = json_object_get(range, "kvs");
        *ret_is_range = json_is_object(range) && (!kvs || json_is_array(kvs));
        return kvs;
}

static bool read_node(const json_t *kvs, struct txn_node *node)
{
        struct etcd_kv kv = { 0 };
        if (json_array_size(kvs) > 1 || (json_array_size(kvs) && !etcd_reply_kv(json_array_get(kvs, 0), &kv)))
                return false;
        node->seen = kv.version ? TXN_THERE : TXN_ABSENT;
        node->version = kv.version ? kv.version - 1 : 0;
        node->lease = kv.lease;
        return true;
}

/* A value that is not a number is no sequence, but its version is known. */
static bool read_sequence(struct etcd_txn *txn, const json_t *kvs)
{
        struct buffer text = { 0 };
        struct etcd_kv kv = { 0 };
        const json_t *first = json_array_get(kvs, 0);
        txn->has_sequence = false;
        txn->sequence_seen = TXN_ABSENT;
        if (!first)
                return true;
        if (!etcd_reply_kv(first, &kv))
                return false;
        txn->sequence_seen = TXN_THERE;
        txn->sequence_changed = kv.changed;
        if (etcd_reply_bytes(first, "value", SEQUENCE_TEXT_MAX, &text) && text.size && text.size <= 10) {
                const char *digits = buffer_text(&text);
                txn->has_sequence = strspn(digits, "0123456789") == text.size;
                if (txn->has_sequence)
                        txn->sequence_read = strtoull(digits, NULL, 10);
        }
        buffer_free(&text);
        return true;
}

/* The name of a child, from its key. */
static bool child_name(const struct etcd_txn *txn, const char *path, const json_t *kv, struct buffer *to)
{
        struct buffer prefix = { 0 };
        etcd_name_children(&prefix, txn->prefix, path);
        buffer_clear(to);
        bool is_good = etcd_reply_bytes(kv, "key", COORD_PATH_MAX * 2, to) && to->size >= prefix.size &&
                       !memcmp(to->data, prefix.data, prefix.size);
        if (is_good) {
                to->size -= prefix.size;
                memmove(to->data, to->data + prefix.size, to->size);
        }
        buffer_free(&prefix);
        return is_good;
}

static bool read_children(const struct etcd_txn *txn, const json_t *kvs, struct txn_node *node)
{
        struct buffer name = { 0 };
        bool is_good = true;
        const json_t *kv;
        size_t i;
        strings_free(&node->children);
        json_array_foreach(kvs, i, kv)
        {
                is_good = is_good && child_name(txn, node->path, kv, &name);
                if (is_good)
                        strings_add(&node->children, buffer_text(&name));
        }
        node->has_children_read = true;
        buffer_free(&name);
        return is_good;
}

static bool read_names(struct etcd_txn *txn, const json_t *kvs)
{
        struct buffer name = { 0 };
        bool is_good = true;
        const json_t *kv;
        size_t i;
        txn->above_names = 0;
        json_array_foreach(kvs, i, kv)
        {
                is_good = is_good && child_name(txn, txn->parent, kv, &name);
                size_t size = is_good ? name.size : 0;
                const char *text = buffer_text(&name);
                if (size > 10 && strspn(text + size - 10, "0123456789") == 10)
                        txn->above_names = max_u64(txn->above_names, strtoull(text + size - 10, NULL, 10) + 1);
        }
        txn->has_names = true;
        buffer_free(&name);
        return is_good;
}

static enum etcd_txn_verdict learn(struct etcd_txn *txn, const json_t *responses)
{
        bool is_good = json_array_size(responses) == txn->reads_count;
        txn->has_names = false;
        for (unsigned i = 0; is_good && i < txn->reads_count; i++) {
                struct txn_node *node = txn->reads[i].node;
                const json_t *kvs = range_at(responses, i, &is_good);
                if (!is_good)
                        break;
                switch (txn->reads[i].kind) {
                case TXN_READ_SESSION:
                        if (!json_array_size(kvs))
                                return ETCD_TXN_EXPIRED;
                        break;
                case TXN_READ_NODE:
                        is_good = read_node(kvs, node);
                        break;
                case TXN_READ_CHILDREN:
                        is_good = read_children(txn, kvs, node);
                        break;
                case TXN_READ_SEQUENCE:
                        is_good = read_sequence(txn, kvs);
                        break;
                case TXN_READ_NAMES:
                        is_good = read_names(txn, kvs);
                        break;
                }
        }
        if (!is_good)
                return ETCD_TXN_BROKEN;
        if (txn_simulate(txn) && txn_is_certain(txn))
                return ETCD_TXN_FAILED;
        if (++txn->attempts < TXN_ATTEMPTS_MAX)
                return ETCD_TXN_AGAIN;
        txn->status = -EBUSY;
        txn->which = 0;
        txn->why = "others changed it each time, faster than this";
        return ETCD_TXN_FAILED;
}

static enum etcd_txn_verdict take_results(struct etcd_txn *txn, const json_t *responses)
{
        size_t at = txn->writes_count;
        for (unsigned i = 0; i < txn->ops_count; i++) {
                struct etcd_kv kv;
                bool is_range;
                if (!txn->ops[i].has_stat)
                        continue;
                const json_t *kvs = range_at(responses, at++, &is_range);
                if (!is_range || json_array_size(kvs) != 1 || !etcd_reply_kv(json_array_get(kvs, 0), &kv))
                        return ETCD_TXN_BROKEN;
                txn->ops[i].stat = (struct coord_stat){ kv.created, kv.version - 1, kv.lease };
        }
        return json_array_size(responses) == at ? ETCD_TXN_DONE : ETCD_TXN_BROKEN;
}

enum etcd_txn_verdict etcd_txn_read(struct etcd_txn *txn, const json_t *reply)
{
        const json_t *succeeded = json_object_get(reply, "succeeded");
        const json_t *responses = json_object_get(reply, "responses");
        if ((succeeded && !json_is_boolean(succeeded)) || (responses && !json_is_array(responses)))
                return ETCD_TXN_BROKEN;
        /* A transaction without comparisons always succeeds. */
        if (txn->only_reads && !json_is_true(succeeded))
                return ETCD_TXN_BROKEN;
        return json_is_true(succeeded) && !txn->only_reads ? take_results(txn, responses) : learn(txn, responses);
}
