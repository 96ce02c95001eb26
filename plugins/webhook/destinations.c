#include "destinations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void destinations_free(struct destinations *d)
{
        while (d->count)
                free(d->list[--d->count]);
}

static struct destination *find(const struct destinations *d, const char *name, size_t *ret_index)
{
        for (size_t i = 0; i < d->count; i++)
                if (!strcmp(d->list[i]->name, name)) {
                        if (ret_index)
                                *ret_index = i;
                        return d->list[i];
                }
        return NULL;
}

/* The one that opens first is the one whose loss costs least. */
static struct destination *take_oldest(struct destinations *d)
{
        struct destination *oldest = d->list[0];
        for (size_t i = 1; i < d->count; i++)
                if (d->list[i]->closed_ms < oldest->closed_ms)
                        oldest = d->list[i];
        return oldest;
}

/* NULL: no memory; then the destination counts as one without trouble. */
static struct destination *ensure(struct destinations *d, const char *name)
{
        struct destination *one = find(d, name, NULL);
        if (one)
                return one;
        if (d->count == DESTINATIONS_MAX)
                one = take_oldest(d);
        else if ((one = malloc(sizeof(*one))))
                d->list[d->count++] = one;
        if (one) {
                *one = (struct destination){ 0 };
                (void)snprintf(one->name, sizeof(one->name), "%s", name);
        }
        return one;
}

uint64_t destinations_ask(struct destinations *d, const char *name, uint64_t now_ms, uint64_t try_ms)
{
        struct destination *one = find(d, name, NULL);
        if (!one || !one->closed_ms)
                return 0;
        if (one->closed_ms > now_ms)
                return one->closed_ms - now_ms;
        if (one->trying_ms > now_ms)
                return one->trying_ms - now_ms;
        one->trying_ms = now_ms + try_ms;
        return 0;
}

void destinations_answered(struct destinations *d, const char *name)
{
        size_t index;
        if (!find(d, name, &index))
                return;
        free(d->list[index]);
        d->list[index] = d->list[--d->count];
}

void destinations_failed(struct destinations *d, const char *name, bool is_down, uint64_t now_ms)
{
        struct destination *one = ensure(d, name);
        if (!one)
                return;
        one->trying_ms = 0;
        one->failures += is_down ? DESTINATION_CLOSES : 1;
        if (one->failures < DESTINATION_CLOSES)
                return;
        /* Several seats may fail at once: that is one failure. */
        if (one->closed_ms > now_ms)
                return;
        one->wait_ms = one->wait_ms ? 2 * one->wait_ms : DESTINATION_WAIT_MS;
        if (one->wait_ms > DESTINATION_WAIT_MAX_MS)
                one->wait_ms = DESTINATION_WAIT_MAX_MS;
        one->closed_ms = now_ms + one->wait_ms;
}

void destinations_close(struct destinations *d, const char *name, uint64_t wait_ms, uint64_t now_ms)
{
        struct destination *one = ensure(d, name);
        if (!one)
                return;
        one->trying_ms = 0;
        one->closed_ms = now_ms + wait_ms;
}

void destinations_stopped(struct destinations *d, const char *name)
{
        struct destination *one = find(d, name, NULL);
        if (one)
                one->trying_ms = 0;
}
