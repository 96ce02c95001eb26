#include "host/handler/reload_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

/* How often a file that is being written is read again before it is refused. */
#define BUSY_TRIES    10
#define BUSY_PAUSE_NS 50000000L

static const struct reload_known *find_known(const struct reload_read *r, const char *name)
{
        for (size_t i = 0; i < r->known_count; i++)
                if (!strcmp(r->known[i].name, name))
                        return &r->known[i];
        return NULL;
}

static int hash_and_copy(const struct reload_read *r, struct reload_item *item)
{
        const char *path = item->handler->plugin_path;
        const struct reload_known *known = find_known(r, item->handler->name);
        enum plugin_copy_source source = plugin_copy_source_of(&r->shared->config);
        if (handler_is_remote(item->handler)) {
                item->has_copy = !r->is_dry; /* of nothing */
                return 0;
        }
        int status = plugin_copy_hash(path, source, &item->id.file_hash, &item->error);
        if (status < 0 || r->is_dry || (known && generation_is_same(&known->id, &item->id)))
                return status;
        status = plugin_copy_make(path, source, r->copies, &item->copy, &item->error);
        if (status == 0) {
                item->has_copy = true;
                item->id.file_hash = item->copy.hash;
        }
        return status;
}

static void read_item(const struct reload_read *r, struct reload_item *item)
{
        item->id.settings_hash = config_handler_hash(item->handler);
        for (int i = 0; item->status == 0 && i < BUSY_TRIES; i++) {
                if (i)
                        (void)nanosleep(&(struct timespec){ .tv_nsec = BUSY_PAUSE_NS }, NULL);
                int status = hash_and_copy(r, item);
                if (status != -ETXTBSY || i == BUSY_TRIES - 1) {
                        item->status = status;
                        return;
                }
        }
}

void reload_read(struct reload_read *r)
{
        r->problems.reader = READER_HOST;
        r->status = shared_config_load(r->path, &r->set, &r->shared, &r->problems);
        if (r->status < 0)
                return;
        const struct config *config = &r->shared->config;
        r->items = memory_zero(config->handlers_count + 1, sizeof(*r->items));
        for (size_t i = 0; i < config->handlers_count; i++) {
                r->items[i].handler = &config->handlers[i];
                read_item(r, &r->items[i]);
        }
}

void reload_read_free(struct reload_read *r)
{
        for (size_t i = 0; r->items && i < r->shared->config.handlers_count; i++)
                if (r->items[i].has_copy)
                        plugin_copy_remove(&r->items[i].copy);
        free(r->items);
        free(r->known);
        free(r->path);
        strings_free(&r->set);
        problems_free(&r->problems);
        shared_config_free(r->shared);
}
