/* Any bytes as what a worker says, as the holder of a recorded start, and as a fence: an answer, what is accepted is in
 * its range, and its follow-ups become an outcome as a runner's do.  The same bytes as what a host says to a worker, as
 * an HTTP answer and as a task; as what hosts say to each other about lent tasks, as they are and behind the beginning
 * that every such message has. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/http_answer.h"
#include "client/work_json.h"
#include "host/lend/lend_message.h"
#include "host/lend/seat_outcome.h"
#include "host/shard/pending_outcome.h"
#include "worker/work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_true)
{
        if (!is_true)
                abort();
}

static void read_report(struct span bytes, enum report_kind kind)
{
        struct work_report r;
        struct error error = { "" };
        if (report_parse(bytes, kind, &r, &error) < 0) {
                demand(error.text[0]);
                return;
        }
        demand(r.checkpoint.size <= NOTE_CHECKPOINT_MAX && r.error.size <= NOTE_TEXT_MAX);
        demand(r.fence.epoch <= TASK_NUMBER_MAX && r.fence.start <= TASK_NUMBER_MAX && r.fence.seq <= TASK_NUMBER_MAX);
        struct ring_reply reply = { .has_result = r.has_result,
                .result = r.result.data,
                .result_size = r.result.size,
                .submits = r.follow_ups.data,
                .submits_size = r.follow_ups.size,
                .submits_count = r.follow_ups_count };
        struct pending_outcome *pending = pending_outcome_done(&reply, NULL, &error);
        demand(!pending || pending->outcome.follow_ups_count == r.follow_ups_count);
        pending_outcome_free(pending);
        report_free(&r);
}

/* What is accepted is in its range, and comes back as the same bytes. */
static void read_message(struct span bytes)
{
        struct lend_message m;
        struct error error = { "" };
        struct buffer again = { 0 };
        if (lend_message_parse(bytes, &m, &error) < 0) {
                demand(error.text[0]);
                return;
        }
        demand(m.kind != LEND_ASK || (m.seats && m.seats <= LEND_SEATS_MAX));
        demand(m.kind != LEND_HAND || (m.fence.seq <= STORE_SEQ_MAX && m.checkpoint.size <= NOTE_CHECKPOINT_MAX));
        lend_message_put(&again, &m);
        demand(lend_message_parse((struct span){ (const char *)again.data, again.size }, &m, &error) == 0);
        buffer_free(&again);
}

static void read_outcome(struct span bytes)
{
        struct seat_outcome o;
        struct error error = { "" };
        if (seat_outcome_parse(bytes, &o, &error) < 0) {
                demand(error.text[0]);
                return;
        }
        demand(strlen(o.error) <= NOTE_TEXT_MAX && o.checkpoint.size <= NOTE_CHECKPOINT_MAX);
        struct pending_outcome *pending = o.has_reply ? pending_outcome_done(&o.reply, NULL, &error) : NULL;
        pending_outcome_free(pending);
}

/* The bytes behind what such a message begins with, so that they are not all refused for that. */
static void read_behind(struct span bytes, const char *magic, void (*read)(struct span bytes))
{
        struct buffer whole = { 0 };
        buffer_put_text(&whole, magic);
        buffer_put_u32(&whole, UINT32_C(0x01020304));
        buffer_put(&whole, bytes.data, bytes.size);
        read((struct span){ (const char *)whole.data, whole.size });
        buffer_free(&whole);
}

/* However the bytes are cut, the answer is the same. */
static void read_answer(struct span bytes)
{
        struct http_answer whole = { 0 };
        struct http_answer pieces = { 0 };
        int cut = 0;
        int r = http_answer_feed(&whole, bytes);
        for (size_t i = 0; i < bytes.size && cut == 0; i++)
                cut = http_answer_feed(&pieces, (struct span){ bytes.data + i, 1 });
        demand(r == cut || (r < 0 && cut < 0));
        demand(r < 0 || (whole.status == pieces.status && whole.body.size == pieces.body.size));
        demand(whole.body.size <= bytes.size);
        http_answer_free(&whole);
        http_answer_free(&pieces);
}

static void read_task(struct span bytes)
{
        struct error error = { "" };
        struct qv_client_work *work = NULL;
        struct qv_client_kept kept = QV_CLIENT_KEPT_INIT;
        json_t *object = json_loadb(bytes.size ? bytes.data : "", bytes.size, JSON_ALLOW_NUL, NULL);
        if (work_of_json(object, "mail", "one", &work, &error) == 0)
                demand(work->id && work->fence && work->key && work->payload && work->ttl_ms && work->attempt);
        else
                demand(error.text[0] && !work);
        qv_client_work_free(work);
        json_decref(object);
        demand(kept_of_json(bytes, &kept, &error) == 0 || error.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct span bytes = { (const char *)data, size };
        struct work_fence fence;
        struct work_fence again;
        struct span worker;
        char text[NOTE_HOLDER_MAX + 1];
        char name[WORKER_NAME_MAX + 1];
        read_report(bytes, REPORT_OUTCOME);
        read_report(bytes, REPORT_HEARTBEAT);
        read_answer(bytes);
        read_task(bytes);
        read_message(bytes);
        read_outcome(bytes);
        read_behind(bytes, "qvlend1", read_message);
        read_behind(bytes, "qvseat1", read_outcome);
        if (fence_parse(bytes, &fence, NULL) == 0) {
                fence_put(text, &fence);
                demand(fence_parse(span_of_text(text), &again, NULL) == 0 && !memcmp(&fence, &again, sizeof(fence)));
        }
        if (holder_parse(bytes, &fence, &worker)) {
                demand(worker.size && worker.size <= WORKER_NAME_MAX);
                memcpy(name, worker.data, worker.size);
                name[worker.size] = 0;
                holder_put(text, &fence, name);
                demand(holder_parse(span_of_text(text), &again, &worker) && again.start == fence.start);
        }
        return 0;
}
