#include "host/schedule/file_schedules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"

#define RETRY_MS        5000u
#define CONFLICTS_SHOWN 8u /* the status document is bounded */

static void begin(struct file_schedules *f);

static void forget(struct schedules_apply **pass)
{
        if (*pass)
                schedules_apply_free(*pass);
        free(*pass);
        *pass = NULL;
}

/* --- a pass --- */

static void say(const struct schedules_apply *pass)
{
        for (uint32_t i = 0; i < pass->files_count; i++) {
                const struct file_schedule *file = &pass->files[i];
                if (file->state == FILE_SCHEDULE_CONFLICT)
                        log_event(LEVEL_ERROR, "schedule-conflict", "schedule=%s text=%s", file->name,
                                LOG_QUOTE("it stands in the configuration and was set by command, too; the command's "
                                          "stays: delete it (quiver schedule delete) and reload, or take it out of the "
                                          "file"));
        }
        if (pass->is_older && pass->others)
                log_event(LEVEL_WARN, "schedules-older",
                        "version=%" PRIu64 " in_force=%" PRIu64 " by=%s differ=%" PRIu32 " text=%s", pass->version,
                        pass->newest.version, LOG_QUOTE(pass->newest.by), pass->others,
                        LOG_QUOTE("a newer configuration has other schedules, which are used; bring this host's file "
                                  "up to date"));
        if (pass->set || pass->deleted)
                log_event(LEVEL_INFO, "schedules", "version=%" PRIu64 " set=%" PRIu32 " deleted=%" PRIu32,
                        pass->version, pass->set, pass->deleted);
}

static void on_timer(uv_timer_t *timer)
{
        begin(timer->data);
}

static void end(struct file_schedules *f, int status, const char *text)
{
        struct schedules_apply *pass = f->pass;
        f->pass = NULL;
        f->has_failed = status < 0;
        if (status == 0) {
                f->failure[0] = 0;
                say(pass);
                forget(&f->last);
                f->last = pass;
        } else if (f->is_stopped) {
                forget(&pass);
        } else {
                if (strcmp(f->failure, text) != 0) {
                        (void)snprintf(f->failure, sizeof(f->failure), "%s", text);
                        log_event(LEVEL_WARN, "schedules-failed", "text=%s hint=%s", LOG_QUOTE(text),
                                LOG_QUOTE("the schedules of this host's file may not all be in force; it is tried "
                                          "again until they are"));
                }
                /* Starts over, because what was read may be outdated. */
                if (!f->next)
                        f->next = schedules_apply_again(pass);
                forget(&pass);
                (void)uv_timer_start(&f->timer, on_timer, RETRY_MS, 0);
                return;
        }
        begin(f);
}

static void step(struct file_schedules *f);

static void on_answer(struct store_request *request)
{
        struct look *look = container_of(request, struct look, request);
        struct file_schedules *f = look->driver;
        struct error error = request->error;
        if (request->status < 0)
                end(f, request->status, error.text);
        else
                step(f);
}

static void step(struct file_schedules *f)
{
        struct look *look = &f->pass->look;
        if (!look_next(look)) {
                end(f, 0, "");
                return;
        }
        look->request.done = on_answer;
        look->start(f->store, look);
}

static void begin(struct file_schedules *f)
{
        if (f->pass || !f->next || f->is_stopped || !f->store)
                return;
        (void)uv_timer_stop(&f->timer);
        f->pass = f->next;
        f->next = NULL;
        f->pass->now_ms = clock_wall_ms();
        f->pass->look.driver = f;
        store_info(f->store, &f->pass->look.info);
        step(f);
}

/* --- events --- */

static void want_pass(struct file_schedules *f, const struct config *config)
{
        struct schedules_apply *pass = memory_zero(1, sizeof(*pass));
        schedules_apply_init(pass);
        pass->version = f->version;
        pass->host = f->host;
        for (size_t i = 0; i < config->schedules_count; i++) {
                struct schedule schedule;
                struct error error = { "" };
                const struct schedule_config *c = &config->schedules[i];
                /* The definition was checked when the file was read; only its time zone's file can be missing since. */
                if (config_schedule(c, &schedule, &error) == 0)
                        schedules_apply_add(pass, c->named.name, &schedule);
                else
                        log_event(LEVEL_ERROR, "schedule-refused", "schedule=%s text=%s", c->named.name,
                                LOG_QUOTE(error.text));
        }
        forget(&f->next);
        f->next = pass;
        begin(f);
}

void file_schedules_take(struct file_schedules *f, const struct config *config)
{
        /* A file dated in the future would win over every later one until then. */
        f->version = max_u64(min_u64(config->version, clock_wall_ms()), 1);
        want_pass(f, config);
}

void file_schedules_desired(
        struct file_schedules *f, const struct config *config, const struct store_desired *items, uint32_t count)
{
        struct schedules_mark mark = { 0 };
        for (uint32_t i = 0; i < count; i++)
                schedules_mark_add(&mark, &items[i]);
        /* A pass that is under way or waits may have read the state before this change. */
        if (f->last && mark.version != f->last->newest.version && !f->next)
                want_pass(f, config);
}

void file_schedules_report(const struct file_schedules *f, json_t *document)
{
        const struct schedules_apply *last = f->last;
        if (!last || (!last->files_count && !(last->is_older && last->others)))
                return;
        json_t *o = json_pack("{s:I, s:I, s:I}", "version", (json_int_t)last->version, "in_force",
                (json_int_t)last->newest.version, "count", (json_int_t)last->files_count);
        json_t *conflicts = json_array();
        for (uint32_t i = 0; i < last->files_count && json_array_size(conflicts) < CONFLICTS_SHOWN; i++)
                if (last->files[i].state == FILE_SCHEDULE_CONFLICT)
                        (void)json_array_append_new(conflicts, json_string(last->files[i].name));
        if (json_array_size(conflicts))
                (void)json_object_set(o, "conflicts", conflicts);
        json_decref(conflicts);
        if (last->is_older && last->others)
                (void)json_object_set_new(o, "differ", json_integer(last->others));
        (void)json_object_set_new(document, "schedules", o);
}

void file_schedules_init(struct file_schedules *f, uv_loop_t *loop)
{
        (void)uv_timer_init(loop, &f->timer);
        f->timer.data = f;
}

void file_schedules_stop(struct file_schedules *f)
{
        f->is_stopped = true;
        (void)uv_timer_stop(&f->timer);
}

void file_schedules_close(struct file_schedules *f)
{
        uv_close((uv_handle_t *)&f->timer, NULL);
}

void file_schedules_free(struct file_schedules *f)
{
        forget(&f->pass);
        forget(&f->next);
        forget(&f->last);
}
