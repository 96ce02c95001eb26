#include "host/pool/runner_settings.h"

void runner_settings_fill(struct runner_start *start, const struct config *config, const struct handler_config *handler,
        const struct plugin_copy *copy)
{
        const struct limits_config *limits = &handler->limits;
        *start = (struct runner_start){
                .handler = handler->name,
                .plugin = copy->path,
                .label = copy->label,
                .seats = handler->threads,
                .batch_max = handler->batch.max,
                .log_level = (uint32_t)config->log.level,
                .log_rate = config->log.rate,
                .result_max = handler->result_max_bytes,
                .payload_max = handler->payload_max_bytes,
                .memory_max = limits->memory_bytes,
                .cpu_seconds_max = limits->cpu_ms / 1000,
                .files_max = limits->descriptors,
                .processes_max = limits->processes,
                .core_max = limits->core_bytes,
                .cores_millis = (uint32_t)(limits->cores * 1000 + 0.5),
                .has_no_network = limits->network == NETWORK_NONE,
                .user = limits->user ? limits->user : "",
                .paths_read = (const char *const *)limits->read.items,
                .paths_read_count = limits->read.count,
                .paths_write = (const char *const *)limits->write.items,
                .paths_write_count = limits->write.count,
                .variables = (const char *const *)handler->environment.items,
                .variables_count = handler->environment.count,
                .settings = handler->settings.items,
                .settings_count = handler->settings.count,
        };
}
