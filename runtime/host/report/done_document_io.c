/* done_document_io.c: reads the predecessor's document once, and writes this host's. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/sha256.h"
#include "host/report/done_document.h"

#define PACE_LEAST_MS 2000u

static void set_place(struct done_report *r)
{
        struct sha256 h;
        uint8_t digest[SHA256_SIZE];
        sha256_init(&h);
        sha256_put(&h, r->host, strlen(r->host));
        sha256_end(&h, digest);
        memcpy(r->place, digest, sizeof(r->place));
}

static void on_read(struct store_request *request)
{
        struct done_report *r = container_of(request, struct done_report, list.request);
        r->is_reading = false;
        /* Without an answer the read is repeated: writing before it would overwrite the predecessor's tasks. */
        if (request->status < 0)
                return;
        r->has_read = true;
        uint64_t written = r->done->added;
        if (r->list.items_count)
                done_document_read(r->done, r->list.items[0].document, r->list.items[0].age_ms, clock_boot_ms());
        /* The store already has what was just read. */
        r->put_added = written ? 0 : r->done->added;
}

static void read_predecessor(struct done_report *r, struct store *store)
{
        set_place(r);
        r->list = (struct store_status_list){ .request.done = on_read, .kind = DOCUMENT_DONE, .is_one = true };
        memcpy(r->list.nonce, r->place, sizeof(r->place));
        r->is_reading = true;
        store_status_list(store, &r->list);
}

static void on_put(struct store_request *request)
{
        struct done_report *r = container_of(request, struct done_report, put.request);
        r->is_putting = false;
        if (request->status < 0)
                r->put_added = 0;
}

static void put(struct done_report *r, struct store *store, uint64_t now_ms)
{
        free(r->document);
        r->document = done_document_make(r->done, r->host, r->age_ms, r->has_flushed, now_ms, STORE_RUNNING_MAX);
        r->put = (struct store_status_put){ .request.done = on_put,
                .kind = DOCUMENT_DONE,
                .document = span_of_text(r->document),
                .keep_ms = r->age_ms };
        memcpy(r->put.nonce, r->place, sizeof(r->place));
        r->put_added = r->done->added;
        r->put_ms = now_ms;
        r->pace_ms = max_u64(PACE_LEAST_MS, r->put.document.size / DONE_BYTES_PER_MS);
        r->is_putting = true;
        store_status_put(store, &r->put);
}

uint64_t done_report_look(struct done_report *r, struct store *store, uint32_t rarer, uint64_t now_ms)
{
        if (!r->done->keep || r->is_reading)
                return UINT64_MAX;
        if (!r->has_read) {
                read_predecessor(r, store);
                return UINT64_MAX;
        }
        if (r->is_putting || r->put_added == r->done->added)
                return UINT64_MAX;
        uint64_t due_ms = r->put_ms ? r->put_ms + r->pace_ms * rarer : 0;
        if (now_ms < due_ms)
                return due_ms;
        put(r, store, now_ms);
        return UINT64_MAX;
}

bool done_report_flush(struct done_report *r, struct store *store, uint64_t now_ms)
{
        if (r->is_reading || r->is_putting)
                return false;
        if (!r->done->keep || !r->has_read || r->has_flushed || !r->done->added)
                return true;
        r->has_flushed = true;
        put(r, store, now_ms);
        return false;
}

void done_report_free(struct done_report *r)
{
        free(r->document);
        r->document = NULL;
}
