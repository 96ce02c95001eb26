/* schedules.c: checks the schedules of a configuration: errors, and warnings about doubtful ones. */
#include <stdlib.h>
#include <string.h>

#include "config/read.h"
#include "schedule/words.h"
#include "store/schedules.h"

int config_schedule(const struct schedule_config *config, struct schedule *ret, struct error *error)
{
        struct schedule_words words = { .cron = config->cron,
                .zone = config->zone,
                .handler = config->handler,
                .key = config->key,
                .at = config->at,
                .start = config->start,
                .end = config->end,
                .payload = span_of_text(config->payload ? config->payload : ""),
                .every_ms = config->every_ms,
                .catchup_ms = config->catchup_ms,
                .jitter_ms = config->jitter_ms,
                .runs_max = config->runs_max,
                .overlap = (enum schedule_overlap)config->overlap,
                .catchup = (enum schedule_catchup)config->catchup,
                .lane = (enum lane)config->lane,
                .from = "file" };
        return schedule_make(&words, ret, error);
}

void config_check_schedules(struct config_tree *t, const struct config *config)
{
        for (size_t i = 0; i < config->schedules_count; i++) {
                const struct schedule_config *c = &config->schedules[i];
                struct config_place place = { c->named.file, c->named.line };
                struct schedule schedule;
                struct error error = { "" };
                /* A missing handler was already reported. */
                if (!c->handler)
                        continue;
                if (config_schedule(c, &schedule, &error) < 0) {
                        problems_error(t->problems, place, "schedules.%s: %s", c->named.name, error.text);
                        continue;
                }
                const char *doubt = schedule.cron ? cron_doubt(&schedule.pattern) : NULL;
                if (doubt)
                        problems_warn(t->problems, place, "schedules.%s.cron: %s: %s", c->named.name, c->cron, doubt);
                if (!config_serving(config, c->handler))
                        problems_warn(t->problems, place,
                                "schedules.%s.handler: no handler of this file serves tasks named %s; another host's "
                                "has to",
                                c->named.name, c->handler);
                char *text = schedule_text(&schedule);
                if (strlen(text) > STORE_SCHEDULE_DEFINITION)
                        problems_error(t->problems, place,
                                "schedules.%s: is longer than %u bytes; let the task's handler read what is long from "
                                "elsewhere",
                                c->named.name, STORE_SCHEDULE_DEFINITION);
                free(text);
                schedule_free(&schedule);
        }
}
