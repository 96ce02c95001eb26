/* Metrics as text, the table that they come from, and the histograms that they are made of. */
#include "check.h"

#include <ctype.h>
#include <stdlib.h>

#include "host/report/handler_report.h"
#include "view/metrics.h"

#define SECOND UINT64_C(1000000000)

/* --- histograms --- */

static void a_bucket_includes_its_bound(void **state)
{
        (void)state;
        struct histogram h = { .sum_s = 0 };
        histogram_add(&h, 0);
        histogram_add(&h, histogram_bounds[0]);
        histogram_add(&h, histogram_bounds[0] + 1);
        histogram_add(&h, histogram_bounds[HISTOGRAM_BOUNDS - 1]);
        histogram_add(&h, histogram_bounds[HISTOGRAM_BOUNDS - 1] + 1);
        histogram_add(&h, UINT64_MAX);
        assert_int_equal(h.counts[0], 2);
        assert_int_equal(h.counts[1], 1);
        assert_int_equal(h.counts[HISTOGRAM_BOUNDS - 1], 1);
        assert_int_equal(h.counts[HISTOGRAM_BOUNDS], 2);
        assert_int_equal(histogram_count(&h), 6);
        for (uint32_t i = 1; i < HISTOGRAM_BOUNDS; i++)
                assert_true(histogram_bounds[i - 1] < histogram_bounds[i]);
}

static uint32_t bucket_of(uint64_t ns)
{
        uint32_t i = 0;
        while (i < HISTOGRAM_BOUNDS && ns > histogram_bounds[i])
                i++;
        return i;
}

static void every_duration_finds_its_bucket(void **state)
{
        (void)state;
        for (unsigned bit = 0; bit < 64; bit++)
                for (uint32_t i = 0; i < 3 * HISTOGRAM_BOUNDS; i++) {
                        uint64_t near = histogram_bounds[i / 3] + i % 3 - 1;
                        uint64_t tried[] = { near, (UINT64_C(1) << bit) + i, (UINT64_C(1) << bit) - 1 };
                        for (size_t n = 0; n < COUNT(tried); n++) {
                                struct histogram h = { .sum_s = 0 };
                                histogram_add(&h, tried[n]);
                                assert_int_equal(h.counts[bucket_of(tried[n])], 1);
                        }
                }
}

static void a_quantile_lies_within_its_bucket(void **state)
{
        (void)state;
        struct histogram h = { .sum_s = 0 };
        assert_true(histogram_quantile(&h, 0.5) == 0);
        for (int i = 0; i < 99; i++)
                histogram_add(&h, 2 * SECOND / 1000); /* in the bucket from 1 to 2.5 ms */
        histogram_add(&h, 20 * SECOND);               /* from 10 to 30 s */
        double p50 = histogram_quantile(&h, 0.5);
        assert_true(p50 > 0.001 && p50 <= 0.0025);
        assert_true(histogram_quantile(&h, 0.99) <= 0.0025);
        double most = histogram_quantile(&h, 1);
        assert_true(most > 10 && most <= 30);
        /* Of what is longer than the last bound only that is known. */
        struct histogram longer = { .sum_s = 0 };
        histogram_add(&longer, UINT64_MAX);
        assert_true(histogram_quantile(&longer, 0.5) == 7200);
}

static void a_difference_never_goes_below_zero(void **state)
{
        (void)state;
        struct histogram before = { .sum_s = 0 };
        struct histogram now = { .sum_s = 0 };
        histogram_add(&before, 0);
        histogram_add(&before, SECOND);
        histogram_join(&now, &before);
        histogram_add(&now, SECOND);
        struct histogram since = histogram_since(&now, &before);
        assert_int_equal(histogram_count(&since), 1);
        assert_true(since.sum_s > 0.999 && since.sum_s < 1.001);
        since = histogram_since(&before, &now);
        assert_int_equal(histogram_count(&since), 0);
        assert_true(since.sum_s == 0);
}

/* --- text --- */

static void labels_are_escaped(void **state)
{
        (void)state;
        struct metrics m = { 0 };
        metrics_begin(&m, METRIC_GENERATION_INFO);
        metrics_put(&m, 1, "mail", "7", "a\"b\\c\nd\x01\xff", "");
        const char *text = buffer_text(&m.text);
        const char *sample = strstr(text, "\nquiver_generation_info{");
        assert_non_null(sample);
        assert_string_equal(sample + 1,
                "quiver_generation_info{handler=\"mail\",generation=\"7\",version=\"a\\\"b\\\\c\\nd??\"} 1\n");
        metrics_free(&m);
}

static void numbers_lose_nothing(void **state)
{
        (void)state;
        struct metrics m = { 0 };
        metrics_put_one(&m, METRIC_APP_TASKS_DONE, 9007199254740991.0);
        metrics_put_one(&m, METRIC_PROCESS_START_TIME, 1794905220.123);
        metrics_put_one(&m, METRIC_LEASE_MARGIN, -0.25);
        const char *text = buffer_text(&m.text);
        assert_non_null(strstr(text, "\nquiver_app_tasks_done 9007199254740991\n"));
        assert_non_null(strstr(text, "\nprocess_start_time_seconds 1794905220.123\n"));
        assert_non_null(strstr(text, "\nquiver_lease_margin_seconds -0.25\n"));
        metrics_free(&m);
}

static void buckets_add_up(void **state)
{
        (void)state;
        struct metrics m = { 0 };
        struct histogram h = { .sum_s = 0 };
        histogram_add(&h, SECOND / 1000);
        histogram_add(&h, SECOND);
        histogram_add(&h, 3 * 3600 * SECOND);
        metrics_begin(&m, METRIC_TASK_RUN);
        metrics_put_histogram(&m, &h, "mail");
        const char *text = buffer_text(&m.text);
        assert_non_null(strstr(text, "_bucket{handler=\"mail\",le=\"0.0005\"} 0\n"));
        assert_non_null(strstr(text, "_bucket{handler=\"mail\",le=\"0.001\"} 1\n"));
        assert_non_null(strstr(text, "_bucket{handler=\"mail\",le=\"0.5\"} 1\n"));
        assert_non_null(strstr(text, "_bucket{handler=\"mail\",le=\"1.0\"} 2\n"));
        assert_non_null(strstr(text, "_bucket{handler=\"mail\",le=\"7200.0\"} 2\n"));
        assert_non_null(strstr(text, "_bucket{handler=\"mail\",le=\"+Inf\"} 3\n"));
        assert_non_null(strstr(text, "_sum{handler=\"mail\"} 10801.001\n"));
        assert_non_null(strstr(text, "_count{handler=\"mail\"} 3\n"));
        metrics_free(&m);
        metrics_begin(&m, METRIC_LOOP_LAG);
        metrics_put_histogram(&m, &h, "");
        assert_non_null(strstr(buffer_text(&m.text), "quiver_loop_lag_seconds_bucket{le=\"+Inf\"} 3\n"));
        assert_non_null(strstr(buffer_text(&m.text), "quiver_loop_lag_seconds_count 3\n"));
        metrics_free(&m);
}

static void openmetrics_names_counters_without_their_ending(void **state)
{
        (void)state;
        struct metrics m = { .is_open = true };
        metrics_put_one(&m, METRIC_TAKEOVERS, 2);
        metrics_end(&m);
        const char *text = buffer_text(&m.text);
        assert_non_null(strstr(text, "# TYPE quiver_takeovers counter\nquiver_takeovers_total 2\n# EOF\n"));
        metrics_free(&m);
        m.is_open = false;
        metrics_put_one(&m, METRIC_TAKEOVERS, 2);
        metrics_end(&m);
        text = buffer_text(&m.text);
        assert_non_null(strstr(text, "# TYPE quiver_takeovers_total counter\nquiver_takeovers_total 2\n"));
        assert_null(strstr(text, "# EOF"));
        metrics_free(&m);
}

/* --- the table --- */

static bool ends_with(const char *text, const char *ending)
{
        size_t size = strlen(text);
        return size >= strlen(ending) && !strcmp(text + size - strlen(ending), ending);
}

static void names_say_their_type_and_unit(void **state)
{
        (void)state;
        for (unsigned i = 0; i < METRICS; i++) {
                const struct metric_family *f = &metric_families[i];
                assert_non_null(f->name);
                for (const char *c = f->name; *c; c++)
                        assert_true(islower((unsigned char)*c) || *c == '_');
                assert_true(ends_with(f->name, "_total") == (f->type == METRIC_COUNTER));
                if (f->type == METRIC_HISTOGRAM)
                        assert_true(ends_with(f->name, "_seconds") && !strchr(f->labels, ' '));
                assert_true(ends_with(f->help, "."));
                assert_null(strpbrk(f->help, "\n\\|"));
                for (unsigned other = 0; other < i; other++)
                        assert_string_not_equal(f->name, metric_families[other].name);
        }
}

/* The labels as the page shows them. */
static void put_row(const struct metric_family *f, struct buffer *to)
{
        buffer_printf(to, "| `%s` | %s | ", f->name, metric_type_name(f->type));
        for (const char *label = f->labels; *label;) {
                size_t size = strcspn(label, " ");
                buffer_printf(to, "%s`%.*s`", label == f->labels ? "" : " ", (int)size, label);
                label += size + (label[size] == ' ');
        }
        buffer_printf(to, "%s| %s |\n", *f->labels ? " " : "", f->help);
}

/* QUIVER_RECORD=1 prints the rows as they should be. */
static void the_documentation_has_every_metric(void **state)
{
        (void)state;
        FILE *file = fopen("etc/METRICS.md", "re");
        static char text[65536];
        unsigned rows = 0;
        if (!file)
                fail_msg("etc/METRICS.md cannot be read; run the test from the top of the tree");
        size_t size = fread(text, 1, sizeof(text) - 1, file);
        text[size] = 0;
        (void)fclose(file);
        for (const char *at = text; (at = strstr(at, "\n| `")); at++)
                rows++;
        for (unsigned i = 0; i < METRICS; i++) {
                struct buffer row = { 0 };
                put_row(&metric_families[i], &row);
                if (getenv("QUIVER_RECORD"))
                        (void)fprintf(stderr, "%s", buffer_text(&row));
                else if (!strstr(text, buffer_text(&row)))
                        fail_msg("etc/METRICS.md lacks the row: %s", buffer_text(&row));
                buffer_free(&row);
        }
        assert_true(getenv("QUIVER_RECORD") || rows == METRICS);
}

/* --- what a status document says of a handler --- */

static void ran(struct handler *handler, unsigned tasks, uint64_t ms)
{
        for (unsigned i = 0; i < tasks; i++)
                histogram_add(&handler->times.run, ms * 1000000);
        handler->counts.done += tasks;
}

static void a_handlers_rates_are_of_the_time_since_the_last_look(void **state)
{
        struct handler handler = { .name = "mail" };
        struct handler_report report = { 0 };
        (void)state;
        handler.counts.done = 1000;
        handler_report_measure(&report, &handler, 5000);
        assert_true(report.done_rate == 0); /* what was before the first look is of no known time */
        handler.counts.done += 30;
        handler.counts.crashed += 2;
        handler.counts.retried += 1;
        handler_report_measure(&report, &handler, 7000);
        assert_true(report.done_rate == 15);
        assert_true(report.failed_rate == 1.5);
        handler_report_measure(&report, &handler, 9000);
        assert_true(report.done_rate == 0 && report.failed_rate == 0);
        (void)snprintf(handler.name, sizeof(handler.name), "other");
        handler.counts.done += 500;
        handler_report_measure(&report, &handler, 11000);
        assert_true(report.done_rate == 0); /* the slot is another handler's now */
}

static void durations_are_told_of_the_last_minutes(void **state)
{
        struct handler handler = { .name = "mail" };
        struct handler_report report = { 0 };
        (void)state;
        handler_report_measure(&report, &handler, 1000);
        ran(&handler, 98, 1);
        ran(&handler, 2, 5000);
        handler_report_measure(&report, &handler, 3000);
        assert_true(report.run_p50_ms > 0.5 && report.run_p50_ms <= 1);
        assert_true(report.run_p99_ms > 2000 && report.run_p99_ms <= 5000);
        for (uint64_t now_ms = 61000; now_ms <= 181000; now_ms += 60000)
                handler_report_measure(&report, &handler, now_ms);
        handler_report_measure(&report, &handler, 182000);
        assert_true(report.run_p50_ms == 0 && report.run_p99_ms == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bucket_includes_its_bound),
                cmocka_unit_test(every_duration_finds_its_bucket),
                cmocka_unit_test(a_quantile_lies_within_its_bucket),
                cmocka_unit_test(a_difference_never_goes_below_zero),
                cmocka_unit_test(labels_are_escaped),
                cmocka_unit_test(numbers_lose_nothing),
                cmocka_unit_test(buckets_add_up),
                cmocka_unit_test(openmetrics_names_counters_without_their_ending),
                cmocka_unit_test(names_say_their_type_and_unit),
                cmocka_unit_test(the_documentation_has_every_metric),
                cmocka_unit_test(a_handlers_rates_are_of_the_time_since_the_last_look),
                cmocka_unit_test(durations_are_told_of_the_last_minutes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
