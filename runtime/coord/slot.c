#include "coord/slot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"

#define HORIZON_MAX_MS (UINT64_C(1) << 47)

static void pump(struct slot *slot);

static struct slot *slot_of(struct coord_request *request)
{
        return container_of(request, struct slot, request);
}

static uint64_t now_ms(struct slot *slot)
{
        return slot->events.wall_ms(slot->events.self);
}

/* Whether the request may or may not have been carried out. */
static bool is_unknown(int status)
{
        return status == -ETIMEDOUT || status == -ECONNRESET;
}

static void fail(struct slot *slot, int status, const char *text)
{
        slot->is_failed = true;
        slot->step = SLOT_REST;
        if (slot->events.failed)
                slot->events.failed(slot->events.self, status, text);
}

/* --- choosing a number ------------------------------------------------------------------------------------------- */

static bool is_passed(const struct slot *slot, uint32_t number)
{
        return slot->passed[number / 8] >> number % 8 & 1;
}

static void pass(struct slot *slot, uint32_t number)
{
        slot->passed[number / 8] |= (uint8_t)(1u << number % 8);
}

static void try_for(struct slot *slot, uint32_t number)
{
        slot->number = number;
        (void)snprintf(slot->node, sizeof(slot->node), "slots/%u", number);
        (void)snprintf(slot->horizon, sizeof(slot->horizon), "horizons/%u", number);
        slot->step = SLOT_READ;
}

static void search(struct slot *slot)
{
        memset(slot->passed, 0, (slot->numbers + 7) / 8);
        slot->is_second = slot->found_later = false;
        slot->step = SLOT_LIST;
}

static void try_next(struct slot *slot)
{
        char text[SLOT_SAYS_MAX];
        uint32_t number = 0;
        if (slot->prefer != SLOT_ANY && !is_passed(slot, slot->prefer)) {
                try_for(slot, slot->prefer);
                return;
        }
        while (number < slot->numbers && is_passed(slot, number))
                number++;
        if (number < slot->numbers) {
                try_for(slot, number);
        } else if (slot->found_later && !slot->is_second) {
                search(slot);
                slot->is_second = true;
        } else {
                (void)snprintf(text, sizeof(text),
                        "all %u slots are taken; processes that give ids have one each, until they end", slot->numbers);
                fail(slot, -EBUSY, text);
        }
}

/* A name that is not a number below the limit is ignored. */
static void listed(struct slot *slot)
{
        for (uint32_t i = 0; i < slot->children.names_count; i++) {
                const char *name = slot->children.names[i];
                char *end;
                unsigned long number = strtoul(name, &end, 10);
                if (*name >= '0' && *name <= '9' && !*end && number < slot->numbers)
                        pass(slot, (uint32_t)number);
        }
        if (slot->fixed != SLOT_ANY)
                try_for(slot, slot->fixed);
        else
                try_next(slot);
}

/* --- the horizon -------------------------------------------------------------------------------------------------- */

/* Parses "UNTIL NONCE". */
static bool horizon_read(struct slot *slot, struct span data)
{
        uint64_t until_ms = 0;
        size_t at = 0;
        for (; at < data.size && data.data[at] >= '0' && data.data[at] <= '9' && until_ms <= HORIZON_MAX_MS; at++)
                until_ms = until_ms * 10 + (uint64_t)(data.data[at] - '0');
        if (!at || until_ms > HORIZON_MAX_MS || at == data.size || data.data[at] != ' ')
                return false;
        slot->recorded_ms = until_ms;
        slot->is_ours = span_is((struct span){ data.data + at + 1, data.size - at - 1 }, span_of_text(slot->nonce));
        return true;
}

static void spoilt(struct slot *slot)
{
        char text[SLOT_SAYS_MAX];
        (void)snprintf(text, sizeof(text),
                "%s is not what Quiver writes, so slot %u is not used; delete the node an hour after its last use",
                slot->horizon, slot->number);
        if (slot->fixed != SLOT_ANY || slot->is_held) {
                fail(slot, -EBADMSG, text);
                return;
        }
        log_event(LEVEL_WARN, "slot", "node=%s text=%s", slot->horizon, LOG_QUOTE(text));
        pass(slot, slot->number);
        try_next(slot);
}

static void grant(struct slot *slot)
{
        slot->has_horizon = slot->is_ours = true;
        slot->recorded_ms = slot->until_ms;
        slot->prefer = slot->number;
        slot->is_extending = false;
        slot->step = SLOT_REST;
        if (!slot->is_releasing)
                slot->events.granted(slot->events.self, slot->number, slot->from_ms, slot->until_ms);
}

static void end_release(struct slot *slot)
{
        slot->is_held = slot->is_releasing = false;
        slot->number = slot->prefer = SLOT_ANY;
        slot->step = SLOT_REST;
        if (slot->events.released)
                slot->events.released(slot->events.self);
}

static void read_horizon(struct slot *slot)
{
        int status = slot->request.status;
        if (is_unknown(status))
                return;
        slot->has_horizon = !status;
        slot->is_ours = false;
        slot->recorded_ms = 0;
        if (status == -EBADMSG || (!status && !horizon_read(slot, slot->get.data))) {
                spoilt(slot);
                return;
        }
        if (status && status != -ENOENT) {
                fail(slot, status, slot->request.error.text);
                return;
        }
        slot->version = slot->get.stat.version;
        /* If we recorded the horizon ourselves, our own generator gave those ids, and does not give an id twice. */
        slot->from_ms = slot->is_ours ? 0 : slot->recorded_ms;
        if (slot->is_releasing && !slot->is_ours) {
                end_release(slot); /* it is another's by now */
        } else if (slot->is_held) {
                slot->step = SLOT_WRITE;
        } else if (slot->fixed == SLOT_ANY && !slot->is_second && !slot->is_ours &&
                   slot->recorded_ms > now_ms(slot) + SLOT_SOON_MS) {
                slot->found_later = true;
                pass(slot, slot->number);
                try_next(slot);
        } else {
                slot->step = SLOT_CLAIM;
        }
}

static void claimed(struct slot *slot)
{
        int status = slot->request.status;
        if (is_unknown(status) || status == -EEXIST) {
                slot->step = SLOT_VERIFY;
                return;
        }
        if (status) {
                fail(slot, status, slot->request.error.text);
                return;
        }
        slot->is_held = true;
        slot->step = SLOT_WRITE;
}

static void verified(struct slot *slot)
{
        int status = slot->request.status;
        char text[2 * SLOT_SAYS_MAX];
        if (is_unknown(status))
                return;
        if (status == -ENOENT) {
                slot->step = SLOT_READ;
                return;
        }
        if (!status && slot->get.stat.owner == slot->session) {
                slot->is_held = true;
                slot->step = SLOT_READ; /* the version that we know may be older than the claim that was lost */
                return;
        }
        if (status && status != -EBADMSG) {
                fail(slot, status, slot->request.error.text);
                return;
        }
        pass(slot, slot->number);
        if (slot->fixed == SLOT_ANY) {
                try_next(slot);
                return;
        }
        (void)snprintf(text, sizeof(text), "slot %u is another's: %.*s; two with one number would give equal ids",
                slot->number, (int)min_u64(slot->get.data.size, SLOT_SAYS_MAX / 2),
                slot->get.data.size ? slot->get.data.data : "it does not say who");
        fail(slot, -EBUSY, text);
}

static void written(struct slot *slot)
{
        int status = slot->request.status;
        /* Another process has written the horizon, or our write may have succeeded: reading it shows which. */
        if (is_unknown(status) || status == -ESTALE || status == -EEXIST || status == -ENOENT) {
                slot->step = SLOT_READ;
                return;
        }
        if (status) {
                fail(slot, status, slot->request.error.text);
                return;
        }
        slot->version = slot->has_horizon ? slot->set.stat.version : slot->create.stat.version;
        if (slot->is_releasing) {
                slot->is_ours = slot->has_horizon = true;
                slot->step = SLOT_DROP;
        } else {
                grant(slot);
        }
}

static void dropped(struct slot *slot)
{
        int status = slot->request.status;
        if (is_unknown(status))
                return;
        if (status && status != -ENOENT) {
                fail(slot, status, slot->request.error.text);
                return;
        }
        end_release(slot);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void answered(struct slot *slot)
{
        switch (slot->step) {
        case SLOT_LIST:
                if (slot->request.status && !is_unknown(slot->request.status))
                        fail(slot, slot->request.status, slot->request.error.text);
                else if (!slot->request.status)
                        listed(slot);
                break;
        case SLOT_READ:
                read_horizon(slot);
                break;
        case SLOT_CLAIM:
                claimed(slot);
                break;
        case SLOT_VERIFY:
                verified(slot);
                break;
        case SLOT_WRITE:
                written(slot);
                break;
        case SLOT_DROP:
                dropped(slot);
                break;
        case SLOT_REST:
                break;
        }
}

static void on_done(struct coord_request *request)
{
        struct slot *slot = slot_of(request);
        slot->is_busy = false;
        if (request->status == -ECANCELED)
                return;
        if (request->status == -EOWNERDEAD)
                slot->session = 0; /* until the next session is reported */
        if (slot->is_stale || request->status == -EOWNERDEAD) {
                slot->is_stale = slot->is_held = false;
                slot->step = SLOT_REST;
        } else {
                answered(slot);
        }
        pump(slot);
}

/* On release the horizon moves back to the last id; the rest of the grant is unused.  Otherwise a horizon never moves
 * back, even if the clock did: ids up to it may have been given. */
static void start_write(struct slot *slot, struct coord_request request)
{
        if (!slot->is_releasing)
                slot->until_ms = max_u64(slot->recorded_ms, max_u64(slot->from_ms, now_ms(slot)) + slot->ahead_ms);
        (void)snprintf(slot->data, sizeof(slot->data), "%" PRIu64 " %s", slot->until_ms, slot->nonce);
        struct span data = span_of_text(slot->data);
        if (slot->has_horizon) {
                slot->set = (struct coord_set){
                        .request = request, .path = slot->horizon, .data = data, .version = slot->version
                };
                coord_set(slot->coord, &slot->set);
        } else {
                slot->create = (struct coord_create){ .request = request, .path = slot->horizon, .data = data };
                coord_create(slot->coord, &slot->create);
        }
}

static void start(struct slot *slot)
{
        struct coord_request request = { .done = on_done };
        slot->is_busy = slot->step != SLOT_REST;
        switch (slot->step) {
        case SLOT_LIST:
                slot->children = (struct coord_children){ .request = request, .path = "slots" };
                coord_children(slot->coord, &slot->children);
                break;
        case SLOT_READ:
        case SLOT_VERIFY:
                slot->get = (struct coord_get){ .request = request,
                        .path = slot->step == SLOT_READ ? slot->horizon : slot->node };
                coord_get(slot->coord, &slot->get);
                break;
        case SLOT_CLAIM:
                slot->create = (struct coord_create){ .request = request,
                        .path = slot->node,
                        .data = span_of_text(slot->says),
                        .flags = COORD_EPHEMERAL };
                coord_create(slot->coord, &slot->create);
                break;
        case SLOT_WRITE:
                start_write(slot, request);
                break;
        case SLOT_DROP:
                slot->del =
                        (struct coord_delete){ .request = request, .path = slot->node, .version = COORD_ANY_VERSION };
                coord_delete(slot->coord, &slot->del);
                break;
        case SLOT_REST:
                break;
        }
}

static void pump(struct slot *slot)
{
        if (slot->is_busy || slot->is_failed || !slot->session)
                return;
        if (slot->step == SLOT_REST && slot->is_releasing)
                slot->step = slot->is_ours ? SLOT_WRITE : SLOT_DROP;
        else if (slot->step == SLOT_REST && slot->wants && !slot->is_held)
                search(slot);
        else if (slot->step == SLOT_REST && slot->wants && slot->is_extending)
                slot->step = SLOT_WRITE;
        start(slot);
}

/* --- from outside ------------------------------------------------------------------------------------------------- */

void slot_init(
        struct slot *slot, struct coord *coord, const struct slot_options *options, const struct slot_events *events)
{
        *slot = (struct slot){ .events = *events,
                .coord = coord,
                .numbers = options->numbers,
                .fixed = options->fixed,
                .ahead_ms = options->ahead_ms,
                .number = SLOT_ANY,
                .prefer = SLOT_ANY };
        (void)snprintf(slot->nonce, sizeof(slot->nonce), "%s", options->nonce);
        (void)snprintf(slot->says, sizeof(slot->says), "%s", options->says);
        slot->passed = memory_zero((slot->numbers + 7) / 8, 1);
}

void slot_free(struct slot *slot)
{
        free(slot->passed);
        slot->passed = NULL;
}

void slot_take(struct slot *slot)
{
        slot->wants = true;
        pump(slot);
}

void slot_extend(struct slot *slot)
{
        slot->is_extending = true;
        pump(slot);
}

bool slot_release(struct slot *slot, uint64_t until_ms)
{
        slot->wants = false;
        slot->is_releasing = slot->is_held && slot->session;
        slot->is_failed = false;
        slot->until_ms = until_ms;
        pump(slot);
        return slot->is_releasing;
}

void slot_retry(struct slot *slot)
{
        slot->is_failed = false;
        pump(slot);
}

void slot_session(struct slot *slot, enum coord_state state, uint64_t session)
{
        if (state == COORD_EXPIRED) {
                bool was_releasing = slot->is_releasing;
                slot->session = 0;
                slot->is_held = slot->is_releasing = false;
                slot->is_stale = slot->is_busy;
                slot->step = SLOT_REST;
                if (was_releasing && slot->events.released)
                        slot->events.released(slot->events.self);
        } else if (state == COORD_ALIVE) {
                slot->session = session;
                slot_retry(slot);
        }
}

void slot_look(struct slot *slot)
{
        slot_retry(slot);
}
