/* Any bytes as what a worker says, as the holder of a recorded start, and as a fence: an answer, what is accepted is in
 * its range, and its follow-ups become an outcome as a runner's do. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/shard/pending_outcome.h"
#include "work/work.h"

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
        struct pending_outcome *pending = pending_outcome_done(&reply, &error);
        demand(!pending || pending->outcome.follow_ups_count == r.follow_ups_count);
        pending_outcome_free(pending);
        report_free(&r);
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
