#include "host/copied.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"

static void end(struct copied *c, int status, const char *text)
{
        free(c->count.counts);
        c->count.counts = NULL;
        free(c->nonces);
        c->nonces = NULL;
        copied_stop(c);
        c->done(c->self, status, text);
}

static bool is_member(const struct copied *c, const uint8_t *nonce)
{
        for (uint32_t i = 0; i < c->nonces_count; i++)
                if (!memcmp(c->nonces + (size_t)i * STORE_NONCE_SIZE, nonce, STORE_NONCE_SIZE))
                        return true;
        return false;
}

static struct copied_suspect *find_suspect(struct copied *c, const uint8_t *nonce)
{
        for (uint32_t i = 0; i < c->suspects_count; i++)
                if (!memcmp(c->suspects[i].nonce, nonce, STORE_NONCE_SIZE))
                        return &c->suspects[i];
        return NULL;
}

/* --- documents: who holds the leases --- */

static const char *text_of(const json_t *document, const char *name)
{
        const char *text = json_string_value(json_object_get(document, name));
        return text ? text : "";
}

/* A host of this machine whose process is gone: it crashed, and its leases expire. */
static bool is_dead_here(const json_t *document)
{
        char machine[256] = "";
        json_int_t pid = json_integer_value(json_object_get(document, "pid"));
        (void)gethostname(machine, sizeof(machine) - 1);
        return *machine && !strcmp(text_of(document, "machine"), machine) && pid > 0 && pid <= INT32_MAX &&
               kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static void forget_dead(struct copied *c, const struct store_status *status)
{
        struct copied_suspect *suspect = find_suspect(c, status->nonce);
        json_t *document = suspect ? json_loadb(status->document.data, status->document.size, 0, NULL) : NULL;
        if (document && is_dead_here(document))
                *suspect = c->suspects[--c->suspects_count];
        json_decref(document);
}

static void refuse(struct copied *c, const struct store_status *status)
{
        char text[ERROR_TEXT_MAX];
        json_t *document = status ? json_loadb(status->document.data, status->document.size, 0, NULL) : NULL;
        const char *name = text_of(document, "name"), *machine = text_of(document, "machine");
        (void)snprintf(text, sizeof(text),
                "another machine uses a copy of the folder %s: host %.64s on %.64s works on this store and is no "
                "member in "
                "this folder. A local: folder serves one machine. Stop that host; or let all hosts use a coordination "
                "that "
                "both machines reach (zookeeper:, etcd: or redis:) and record it: quiver app set coordination=URL",
                c->folder, *name ? name : "of an unknown name", *machine ? machine : "a machine that it does not name");
        json_decref(document);
        end(c, -EINVAL, text);
}

static void on_timer(uv_timer_t *timer)
{
        copied_look(timer->data);
}

static void on_documents(struct store_request *request)
{
        struct copied *c = container_of(request, struct copied, documents.request);
        bool is_second = c->has_timer;
        if (request->status < 0) {
                end(c, 0, "");
                return;
        }
        for (uint32_t i = 0; is_second && i < c->documents.items_count; i++)
                if (find_suspect(c, c->documents.items[i].nonce)) {
                        refuse(c, &c->documents.items[i]);
                        return;
                }
        if (is_second) {
                refuse(c, NULL);
                return;
        }
        for (uint32_t i = 0; i < c->documents.items_count; i++)
                forget_dead(c, &c->documents.items[i]);
        if (!c->suspects_count) {
                end(c, 0, "");
                return;
        }
        (void)uv_timer_init(c->loop, &c->timer);
        c->timer.data = c;
        c->has_timer = true;
        /* Owners renew three times per TTL, so every living owner renews within half of it. */
        (void)uv_timer_start(&c->timer, on_timer, c->ttl_ms / 2, 0);
}

/* --- leases --- */

static void note(struct copied *c, const struct store_counts *counts)
{
        struct copied_suspect *suspect = find_suspect(c, counts->holder);
        if (!suspect && c->suspects_count < COPIED_SUSPECTS_MAX) {
                suspect = &c->suspects[c->suspects_count++];
                *suspect = (struct copied_suspect){ 0 };
                memcpy(suspect->nonce, counts->holder, STORE_NONCE_SIZE);
        }
        if (suspect)
                suspect->left_ms = max_u64(suspect->left_ms, counts->left_ms);
}

/* Keeps the suspects whose leases were renewed since the first look: their hosts are alive. */
static void keep_renewed(struct copied *c, const struct copied_suspect *before, uint32_t before_count)
{
        uint64_t passed_ms = clock_boot_ms() - c->looked_ms;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < c->suspects_count; i++) {
                bool is_renewed = false;
                for (uint32_t k = 0; k < before_count; k++)
                        is_renewed |= !memcmp(before[k].nonce, c->suspects[i].nonce, STORE_NONCE_SIZE) &&
                                      c->suspects[i].left_ms + passed_ms > before[k].left_ms + c->ttl_ms / 10;
                if (is_renewed)
                        c->suspects[kept++] = c->suspects[i];
        }
        c->suspects_count = kept;
}

static void on_counted(struct store_request *request)
{
        struct copied *c = container_of(request, struct copied, count.request);
        struct copied_suspect before[COPIED_SUSPECTS_MAX];
        uint32_t before_count = c->suspects_count;
        if (request->status < 0) {
                end(c, 0, "");
                return;
        }
        memcpy(before, c->suspects, sizeof(before));
        c->suspects_count = 0;
        for (uint32_t i = 0; i < c->count.counted; i++) {
                const struct store_counts *counts = &c->count.counts[i];
                if (counts->is_held && counts->left_ms && !is_member(c, counts->holder))
                        note(c, counts);
        }
        if (c->has_timer)
                keep_renewed(c, before, before_count);
        else
                c->looked_ms = clock_boot_ms();
        if (!c->suspects_count) {
                end(c, 0, "");
                return;
        }
        c->documents = (struct store_status_list){ .request.done = on_documents, .kind = DOCUMENT_STATUS };
        store_status_list(c->store, &c->documents);
}

/* --- members --- */

/* A member's node is named NAME.NONCE. */
static bool read_nonce(const char *node, uint8_t *ret_nonce)
{
        const char *dot = strrchr(node, '.');
        if (!dot || strlen(dot + 1) != 2 * STORE_NONCE_SIZE ||
                strspn(dot + 1, "0123456789abcdef") != 2 * STORE_NONCE_SIZE)
                return false;
        for (size_t i = 0; i < STORE_NONCE_SIZE; i++) {
                unsigned byte = 0;
                (void)sscanf(dot + 1 + 2 * i, "%2x", &byte);
                ret_nonce[i] = (uint8_t)byte;
        }
        return true;
}

static void on_members(struct coord_request *request)
{
        struct copied *c = container_of(request, struct copied, members.request);
        struct store_info info;
        if (request->status < 0 && request->status != -ENOENT) {
                end(c, 0, "");
                return;
        }
        uint32_t count = request->status ? 0 : c->members.names_count;
        free(c->nonces);
        c->nonces = memory_zero(count + 1, STORE_NONCE_SIZE);
        c->nonces_count = 0;
        for (uint32_t i = 0; i < count; i++)
                c->nonces_count +=
                        read_nonce(c->members.names[i], c->nonces + (size_t)c->nonces_count * STORE_NONCE_SIZE);
        store_info(c->store, &info);
        free(c->count.counts);
        c->count = (struct store_count){ .request.done = on_counted,
                .shards = info.shards,
                .counts = memory_zero(info.shards, sizeof(struct store_counts)) };
        store_count(c->store, &c->count);
}

void copied_look(struct copied *c)
{
        c->members = (struct coord_children){ .request.done = on_members, .path = "members" };
        coord_children(c->coord, &c->members);
}

void copied_stop(struct copied *c)
{
        if (c->has_timer)
                uv_close((uv_handle_t *)&c->timer, NULL);
        c->has_timer = false;
}
