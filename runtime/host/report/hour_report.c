#include "host/report/hour_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sha256.h"

/* Rates over less time than this are not meaningful. */
#define POINT_LEAST_MS 10u
/* How long the store keeps the document of a host that is gone: until all points are older than an hour. */
#define KEEP_MS (HOUR_MS + HOUR_STEP_MS)

/* --- measuring --- */

static struct hour_sums sums_now(const struct hour_report *r)
{
        const struct routes *routes = &r->handlers->dispatch->routes;
        struct hour_sums sums = { .at_ms = clock_boot_ms() };
        for (uint32_t i = 0; i < r->handlers->count; i++) {
                const struct handler *handler = r->handlers->list[i];
                const struct finished_counts *finished = &routes->finished[handler->slot];
                sums.done += finished->counts[FINISHED_DONE];
                for (unsigned kind = FINISHED_DONE + 1; kind < FINISHED_KINDS; kind++)
                        sums.failed += finished->counts[kind];
                histogram_join(&sums.wait, &handler->times.wait);
                histogram_join(&sums.run, &handler->times.run);
        }
        return sums;
}

/* A sum shrinks when a handler is removed with its counts. */
static double per_second(uint64_t now, uint64_t before, double seconds)
{
        return now > before ? (double)(now - before) / seconds : 0;
}

static void measure_held(struct hour_report *r, struct hour_point *point)
{
        uint64_t now_ms = clock_boot_ms();
        struct backlog_sum backlog = backlog_sum(r->backlog, now_ms);
        survey_take(&r->survey, r->handlers, r->shards, now_ms, clock_wall_ms());
        if (backlog.is_recent)
                point->waiting = (double)(store_counts_queued(&backlog.counts) + store_counts_parked(&backlog.counts) +
                                          backlog.unowned_in_flight);
        for (uint32_t i = 0; i < r->handlers->count; i++) {
                const struct survey_handler *held = &r->survey.handlers[i];
                uint64_t seats = handler_seats(r->handlers->list[i]);
                for (unsigned lane = 0; lane < LANES; lane++)
                        point->waiting += (double)held->waiting_lanes[lane];
                point->running += (double)held->running;
                point->seats += (double)seats;
                point->seats_used += (double)(held->seated < seats ? held->seated : seats);
        }
}

static void add_point(struct hour_report *r)
{
        struct hour_sums now = sums_now(r);
        const struct hour_sums *before = &r->before;
        double seconds = (double)(now.at_ms - before->at_ms) / 1000;
        struct histogram wait = histogram_since(&now.wait, &before->wait);
        struct histogram run = histogram_since(&now.run, &before->run);
        struct hour_point point = { .at_ms = clock_wall_ms(),
                .seconds = seconds,
                .done = per_second(now.done, before->done, seconds),
                .failed = per_second(now.failed, before->failed, seconds),
                .wait_p50 = histogram_quantile(&wait, 0.5),
                .wait_p99 = histogram_quantile(&wait, 0.99),
                .run_p50 = histogram_quantile(&run, 0.5),
                .run_p99 = histogram_quantile(&run, 0.99) };
        measure_held(r, &point);
        hour_add(&r->hour, &point);
        r->before = now;
}

/* --- reading and writing --- */

static void set_place(struct hour_report *r)
{
        struct sha256 h;
        uint8_t digest[SHA256_SIZE];
        sha256_init(&h);
        sha256_put(&h, r->host, strlen(r->host));
        sha256_end(&h, digest);
        memcpy(r->place, digest, sizeof(r->place));
}

/* Puts the points read before the few that were measured meanwhile. */
static void take(struct hour_report *r, const struct hour *read)
{
        struct hour ours = r->hour;
        if (strcmp(read->name, ours.name) != 0)
                return;
        r->hour = *read;
        for (uint32_t i = 0; i < ours.count; i++)
                hour_add(&r->hour, &ours.points[i]);
}

static void on_read(struct store_request *request)
{
        struct hour_report *r = container_of(request, struct hour_report, list.request);
        struct hour read;
        r->is_reading = false;
        /* Without an answer the read is repeated: writing before it would overwrite the predecessor's points. */
        if (request->status < 0)
                return;
        r->has_read = true;
        if (r->list.items_count && hour_read(&read, r->list.items[0].document) == 0)
                take(r, &read);
}

static void read_before(struct hour_report *r)
{
        r->list = (struct store_status_list){ .request.done = on_read, .kind = DOCUMENT_HISTORY, .is_one = true };
        memcpy(r->list.nonce, r->place, sizeof(r->place));
        r->is_reading = true;
        store_status_list(r->shards->store, &r->list);
}

static void on_put(struct store_request *request)
{
        struct hour_report *r = container_of(request, struct hour_report, put.request);
        /* A failed write is not repeated: the next document contains its points, too. */
        r->is_putting = false;
}

static void put(struct hour_report *r)
{
        free(r->document);
        r->document = hour_document(&r->hour);
        r->put = (struct store_status_put){ .request.done = on_put,
                .kind = DOCUMENT_HISTORY,
                .document = span_of_text(r->document),
                .keep_ms = KEEP_MS };
        memcpy(r->put.nonce, r->place, sizeof(r->place));
        r->is_putting = true;
        store_status_put(r->shards->store, &r->put);
}

/* --- once a minute --- */

static void on_counted(struct waiter *waiter)
{
        struct hour_report *r = container_of(waiter, struct hour_report, waiter);
        r->is_waiting = false;
        if (!r->shards->store || r->has_flushed)
                return;
        add_point(r);
        if (r->has_read && !r->is_putting)
                put(r);
}

static void on_minute(uv_timer_t *timer)
{
        struct hour_report *r = timer->data;
        if (!r->shards->store)
                return;
        if (!r->has_read && !r->is_reading)
                read_before(r);
        if (r->is_waiting)
                return;
        r->is_waiting = true;
        r->waiter = (struct waiter){ .done = on_counted };
        backlog_want(r->backlog, &r->waiter);
}

void hour_report_start(struct hour_report *r, uv_loop_t *loop)
{
        (void)snprintf(r->hour.name, sizeof(r->hour.name), "%s", r->host);
        set_place(r);
        r->before = sums_now(r);
        (void)uv_timer_init(loop, &r->timer);
        r->timer.data = r;
        (void)uv_timer_start(&r->timer, on_minute, HOUR_STEP_MS, HOUR_STEP_MS);
        read_before(r);
}

bool hour_report_flush(struct hour_report *r)
{
        if (r->is_reading || r->is_putting)
                return false;
        if (!r->timer.data || !r->has_read || r->has_flushed || !r->shards->store)
                return true;
        r->has_flushed = true;
        if (clock_boot_ms() - r->before.at_ms < POINT_LEAST_MS)
                return true;
        add_point(r);
        put(r);
        return false;
}

void hour_report_close(struct hour_report *r)
{
        if (r->timer.data)
                uv_close((uv_handle_t *)&r->timer, NULL);
}

void hour_report_free(struct hour_report *r)
{
        free(r->document);
        survey_free(&r->survey);
}
