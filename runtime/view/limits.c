#include "view/limits.h"

#include <math.h>
#include <string.h>

#include "base/numbers.h"
#include "base/units.h"
#include "store/limit_override.h"
#include "view/json.h"
#include "view/table.h"
#include "view/text.h"

#define LIMITS_MAX      256u /* limits shown */
#define HANDLERS_MAX    64u  /* of one limit */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Numbers of the hosts that are added up. */
static const char *const sums[] = { "granted", "in_use", "waiting", "closed", "buckets", "started", "refused", "lost" };
/* Numbers taken from the newest definition that a host has. */
static const char *const amounts[] = { "rate", "per_ms", "burst", "concurrency" };

json_t *limits_get(const json_t *limits, const char *name)
{
        size_t i;
        json_t *limit;
        json_array_foreach(limits, i, limit)
        {
                if (!strcmp(view_json_get_text(limit, "name"), name))
                        return limit;
        }
        return NULL;
}

/* NULL: there are too many limits. */
static json_t *ensure(json_t *limits, const char *name)
{
        json_t *limit = limits_get(limits, name);
        size_t at = 0;
        if (limit || !*name || json_array_size(limits) == LIMITS_MAX)
                return limit;
        limit = json_object();
        view_json_set_text(limit, "name", name);
        view_json_set_text(limit, "kind", "");
        view_json_number(limit, "version", 0);
        (void)json_object_set_new(limit, "handlers", json_array());
        view_json_number(limit, "hosts", 0);
        for (size_t i = 0; i < COUNT_OF(sums); i++)
                view_json_number(limit, sums[i], 0);
        view_json_number(limit, "waiting_keys", 0);
        view_json_number(limit, "waiting_tasks", 0);
        view_json_number(limit, "oldest_ms", 0);
        (void)json_object_set_new(limit, "started_rate", json_real(0));
        while (at < json_array_size(limits) && strcmp(view_json_get_text(json_array_get(limits, at), "name"), name) < 0)
                at++;
        (void)json_array_insert_new(limits, at, limit);
        return limit;
}

static void add_handlers(json_t *into, const json_t *said)
{
        size_t i;
        const json_t *name;
        json_array_foreach(said, i, name)
        {
                size_t k;
                const json_t *known;
                bool is_known = !json_is_string(name) || json_array_size(into) == HANDLERS_MAX;
                json_array_foreach(into, k, known)
                {
                        is_known |= json_equal(name, known);
                }
                if (!is_known)
                        (void)json_array_append(into, (json_t *)name);
        }
}

static void take_definition(json_t *into, const json_t *said)
{
        bool is_rate = view_json_get_number(said, "rate") > 0;
        view_json_number(into, "version", view_json_get_number(said, "version"));
        view_json_set_text(into, "kind", is_rate ? "rate" : "concurrency");
        for (size_t i = 0; i < COUNT_OF(amounts); i++) {
                (void)json_object_del(into, amounts[i]);
                if (view_json_get_number(said, amounts[i]))
                        view_json_number(into, amounts[i], view_json_get_number(said, amounts[i]));
        }
        (void)json_object_del(into, "by");
        if (*view_json_get_text(said, "by"))
                view_json_set_text(into, "by", view_json_get_text(said, "by"));
}

void limits_add_said(json_t *limits, const json_t *said, uint64_t document_age_ms)
{
        json_t *into = ensure(limits, view_json_get_text(said, "name"));
        double rate = json_number_value(json_object_get(said, "started_rate"));
        if (!into)
                return;
        if (view_json_get_number(said, "version") > view_json_get_number(into, "version"))
                take_definition(into, said);
        add_handlers(json_object_get(into, "handlers"), json_object_get(said, "handlers"));
        view_json_number(into, "hosts", view_json_get_number(into, "hosts") + 1);
        for (size_t i = 0; i < COUNT_OF(sums); i++)
                view_json_number(
                        into, sums[i], view_json_get_number(into, sums[i]) + view_json_get_number(said, sums[i]));
        uint64_t waited_ms = view_json_get_number(said, "oldest_ms");
        if (waited_ms && waited_ms + document_age_ms > view_json_get_number(into, "oldest_ms"))
                view_json_number(into, "oldest_ms", waited_ms + document_age_ms);
        rate += json_number_value(json_object_get(into, "started_rate"));
        (void)json_object_set_new(into, "started_rate", json_real(isfinite(rate) && rate > 0 ? rate : 0));
}

bool limits_add_desired(json_t *limits, const struct store_desired *item, uint64_t wall_ms)
{
        size_t prefix = sizeof(LIMIT_OVERRIDE_PREFIX) - 1;
        struct limit_override o;
        if (item->name.size <= prefix || memcmp(item->name.data, LIMIT_OVERRIDE_PREFIX, prefix) != 0)
                return false;
        if (!limit_override_read(item->value, &o) || !limit_override_is_on(&o, wall_ms))
                return true;
        json_t *name = view_json_text_span((struct span){ item->name.data + prefix, item->name.size - prefix });
        json_t *into = ensure(limits, json_string_value(name));
        const struct {
                const char *name;
                uint64_t value;
        } set[] = { { "rate", o.rate }, { "per_ms", o.per_ms }, { "burst", o.burst }, { "concurrency", o.concurrency },
                { "version", o.version }, { "until_ms", o.until_ms } };
        json_t *said = json_object();
        for (size_t i = 0; i < COUNT_OF(set); i++)
                if (set[i].value)
                        view_json_number(said, set[i].name, set[i].value);
        if (into)
                (void)json_object_set(into, "set", said);
        json_decref(said);
        json_decref(name);
        return true;
}

void limits_add_key(json_t *limits, const struct store_key_info *key)
{
        static const struct span prefix = SPAN_TEXT("limit:");
        if (key->state != KEY_NAMED || key->name.size <= prefix.size ||
                memcmp(key->name.data, prefix.data, prefix.size) != 0)
                return;
        struct span name = { key->name.data + prefix.size, key->name.size - prefix.size };
        const char *slash = memchr(name.data, '/', name.size);
        name.size = slash ? (size_t)(slash - name.data) : name.size;
        json_t *text = view_json_text_span(name);
        json_t *into = ensure(limits, json_string_value(text));
        json_decref(text);
        if (!into)
                return;
        view_json_number(into, "waiting_keys", view_json_get_number(into, "waiting_keys") + 1);
        view_json_number(into, "waiting_tasks", view_json_get_number(into, "waiting_tasks") + key->tasks);
        if (key->head_age_ms > view_json_get_number(into, "oldest_ms"))
                view_json_number(into, "oldest_ms", key->head_age_ms);
}

void limits_mark_estimated(json_t *limits)
{
        size_t i;
        json_t *limit;
        json_array_foreach(limits, i, limit)
        {
                (void)json_object_set_new(limit, "estimated", json_true());
        }
}

/* --- the limit's home --- */

json_t *limit_home_as_json(const struct store_limit_look *look)
{
        const struct store_limit *limit = &look->limit;
        json_t *o = json_object();
        view_json_number(o, "version", limit->version);
        if (limit->rate) {
                view_json_number(o, "rate", limit->rate);
                view_json_number(o, "period_ms", limit->period_ms);
                view_json_number(o, "burst", limit->burst);
        } else {
                view_json_number(o, "concurrency", limit->concurrency);
                view_json_number(o, "grace_ms", limit->grace_ms);
        }
        view_json_number(o, "values_max", limit->values_max);
        view_json_number(o, "values_count", look->values_count);
        view_json_number(o, "refused", look->refused);
        return o;
}

json_t *limit_value_as_json(const struct store_limit *limit, const struct store_limit_value *value)
{
        json_t *o = json_object();
        view_json_span(o, "value", value->value);
        if (limit->rate) {
                view_json_number(o, "tokens", value->tokens);
        } else {
                view_json_number(o, "held", value->held);
                view_json_number(o, "holders", value->holders);
                view_json_number(o, "waiting", value->waiting);
        }
        view_json_number(o, "closed_ms", value->closed_ms);
        return o;
}

/* --- as text --- */

void limit_put_amount(struct buffer *to, const json_t *limit)
{
        char per[UNITS_TEXT_MAX];
        uint64_t rate = view_json_get_number(limit, "rate");
        uint64_t concurrency = view_json_get_number(limit, "concurrency");
        if (rate)
                buffer_printf(to, "%llu per %s, burst %llu", (unsigned long long)rate,
                        units_format_ms(per, view_json_get_number(limit, "per_ms")),
                        (unsigned long long)view_json_get_number(limit, "burst"));
        else if (concurrency)
                buffer_printf(to, "%llu at once", (unsigned long long)concurrency);
        else
                buffer_printf(to, "no host has it");
}

static void put_names(struct buffer *to, const json_t *names)
{
        size_t i;
        const json_t *name;
        json_array_foreach(names, i, name)
        {
                buffer_printf(to, "%s%s", i ? ", " : "", json_string_value(name));
        }
}

static uint64_t all_waiting(const json_t *limit)
{
        return view_json_get_number(limit, "waiting") + view_json_get_number(limit, "waiting_tasks");
}

static bool is_estimated(const json_t *limit)
{
        return json_is_true(json_object_get(limit, "estimated"));
}

static void put_used(struct buffer *to, const json_t *limit)
{
        if (view_json_get_number(limit, "rate"))
                buffer_printf(to, "%.1f/s", json_number_value(json_object_get(limit, "started_rate")));
        else
                buffer_printf(to, "%llu", (unsigned long long)view_json_get_number(limit, "in_use"));
}

void limits_as_text(struct buffer *to, const json_t *limits, bool has_color)
{
        struct table table = { .has_color = has_color };
        struct buffer cell = { 0 };
        size_t i;
        const json_t *limit;
        table_text_column(&table, "LIMIT", 32);
        table_text_column(&table, "ALLOWS", 40);
        table_text_column(&table, "BY", 24);
        table_text_column(&table, "USED", 16);
        table_number_column(&table, "GRANTED");
        table_number_column(&table, "WAITING");
        table_number_column(&table, "CLOSED");
        table_text_column(&table, "HANDLERS", 40);
        json_array_foreach(limits, i, limit)
        {
                bool is_set = json_is_object(json_object_get(limit, "set"));
                uint64_t closed = view_json_get_number(limit, "closed");
                table_row(&table);
                table_put_text(&table, TONE_PLAIN, view_json_get_text(limit, "name"));
                limit_put_amount(&cell, limit);
                buffer_printf(&cell, "%s", is_set ? " (set)" : "");
                table_put_text(&table, is_set ? TONE_WARN : TONE_PLAIN, buffer_text(&cell));
                buffer_clear(&cell);
                table_put_text(
                        &table, TONE_PLAIN, *view_json_get_text(limit, "by") ? view_json_get_text(limit, "by") : "-");
                put_used(&cell, limit);
                table_put_text(&table, TONE_PLAIN, buffer_text(&cell));
                buffer_clear(&cell);
                table_put_number(&table, TONE_PLAIN, view_json_get_number(limit, "granted"));
                buffer_printf(&cell, "%llu%s", (unsigned long long)all_waiting(limit), is_estimated(limit) ? "+" : "");
                table_put_text(&table, TONE_PLAIN, buffer_text(&cell));
                buffer_clear(&cell);
                table_put_number(&table, closed ? TONE_WARN : TONE_PLAIN, closed);
                put_names(&cell, json_object_get(limit, "handlers"));
                table_put_text(&table, TONE_PLAIN, cell.size ? buffer_text(&cell) : "-");
                buffer_clear(&cell);
        }
        table_print(&table, to);
        table_free(&table);
        buffer_free(&cell);
}

static void put_values(struct buffer *to, const json_t *limit, bool has_color)
{
        bool is_rate = view_json_get_number(limit, "rate") > 0;
        struct table table = { .has_color = has_color };
        size_t i;
        const json_t *value;
        table_text_column(&table, "VALUE", 48);
        table_number_column(&table, is_rate ? "TOKENS" : "HELD");
        if (!is_rate)
                table_number_column(&table, "HOSTS");
        if (!is_rate)
                table_number_column(&table, "HOSTS WAITING");
        table_text_column(&table, "CLOSED FOR", 0);
        json_array_foreach(json_object_get(limit, "values"), i, value)
        {
                const char *name = view_json_get_text(value, "value");
                table_row(&table);
                table_put_text(&table, TONE_PLAIN, *name ? name : "(all)");
                table_put_number(&table, TONE_PLAIN, view_json_get_number(value, is_rate ? "tokens" : "held"));
                if (!is_rate)
                        table_put_number(&table, TONE_PLAIN, view_json_get_number(value, "holders"));
                if (!is_rate)
                        table_put_number(&table, TONE_PLAIN, view_json_get_number(value, "waiting"));
                table_put_age(&table, TONE_WARN, view_json_get_number(value, "closed_ms"));
        }
        buffer_printf(to, "\n");
        table_print(&table, to);
        table_free(&table);
}

void limit_as_text(struct buffer *to, const json_t *limit, bool has_color, uint64_t wall_ms)
{
        char time[UNITS_TEXT_MAX];
        const json_t *set = json_object_get(limit, "set");
        uint64_t until_ms = view_json_get_number(set, "until_ms");
        buffer_printf(to, "%s: ", view_json_get_text(limit, "name"));
        limit_put_amount(to, limit);
        if (*view_json_get_text(limit, "by"))
                buffer_printf(to, ", by %s", view_json_get_text(limit, "by"));
        buffer_printf(to, "\n");
        if (until_ms)
                buffer_printf(to, "  set          for another %s\n",
                        units_format_ms(time, until_ms > wall_ms ? until_ms - wall_ms : 0));
        else if (set)
                buffer_printf(to, "  set          until `quiver limit clear %s`\n", view_json_get_text(limit, "name"));
        buffer_printf(to, "  handlers     ");
        put_names(to, json_object_get(limit, "handlers"));
        buffer_printf(to, "\n  used         ");
        put_used(to, limit);
        buffer_printf(to, ", %llu starts since its hosts started\n  granted      %llu to %llu hosts\n",
                (unsigned long long)view_json_get_number(limit, "started"),
                (unsigned long long)view_json_get_number(limit, "granted"),
                (unsigned long long)view_json_get_number(limit, "hosts"));
        buffer_printf(to, "  waiting      %llu tasks on hosts, %s%llu in the store behind %llu keys",
                (unsigned long long)view_json_get_number(limit, "waiting"), is_estimated(limit) ? "at least " : "",
                (unsigned long long)view_json_get_number(limit, "waiting_tasks"),
                (unsigned long long)view_json_get_number(limit, "waiting_keys"));
        if (all_waiting(limit) && view_json_get_number(limit, "oldest_ms"))
                buffer_printf(
                        to, ", the oldest for %s", units_format_ms(time, view_json_get_number(limit, "oldest_ms")));
        buffer_printf(to, "\n");
        if (json_array_size(json_object_get(limit, "values")))
                put_values(to, limit, has_color);
}
