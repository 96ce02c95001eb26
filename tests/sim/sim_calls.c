/* sim_calls.c: a host's way to the store, as a store driver: messages that are lost, doubled and late. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

uint64_t sim_host_fenced(const struct sim_host *h)
{
        uint64_t fenced = 0;
        for (uint32_t i = 0; i < SHARDS; i++)
                fenced += h->shards.list[i].shard.fenced;
        return fenced;
}

/* The host hears of it, unless it has heard already, and goes on. */
static void finish(struct sim_host *h, struct store_request *request, int status)
{
        uint64_t fenced = sim_host_fenced(h);
        request_finish(request, status);
        h->sim->counts.fenced += sim_host_fenced(h) - fenced;
        sim_host_turn(h);
}

static void on_answer(struct sim *sim, void *arg)
{
        struct sim_call *call = arg;
        struct sim_host *h = call->host;
        (void)sim;
        if (h->waiting_call[call->shard] != call->number)
                return;
        h->waiting_call[call->shard] = 0;
        /* All but the request itself, which comes first in each. */
        size_t head = sizeof(struct store_request);
        if (call->op == OP_RENEW) {
                struct store_renew *renew = (struct store_renew *)call->request;
                memcpy(renew->items, call->renewals, sizeof(call->renewals));
                renew->desired_version = call->renew.desired_version;
        } else
                memcpy((char *)call->request + head, (const char *)&call->acquire + head, call->size - head);
        if (call->op == OP_FIRES)
                memcpy(call->fires.fires, call->fired, call->fires.fires_count * sizeof(*call->fired));
        finish(h, call->request, 0);
}

static void on_arrival(struct sim *sim, void *arg)
{
        struct sim_call *call = arg;
        sim_store_execute(sim, call);
        struct sim_host *h = call->host;
        bool is_lost = sim_happens(sim, 25) || h->store_cut_until_ms > sim->now_ms;
        if (is_lost || !h->is_alive || h->life != call->life) {
                free(call);
                return;
        }
        sim_at_host(h, sim_travel_ms(sim), on_answer, call);
}

struct patience {
        struct sim_host *host;
        struct store_request *request;
        uint32_t shard;
        uint64_t number;
};

static void on_no_answer(struct sim *sim, void *arg)
{
        struct patience *p = arg;
        (void)sim;
        if (p->host->waiting_call[p->shard] != p->number)
                return;
        p->host->waiting_call[p->shard] = 0;
        finish(p->host, p->request, error_set(&p->request->error, -ETIMEDOUT, "no answer"));
}

/* Each sending is a message of its own: lost, doubled, or so late that its sender has given up. */
static void post(struct sim_host *h, const struct sim_call *call)
{
        struct sim *sim = h->sim;
        uint32_t copies = sim_happens(sim, 40) ? 2 : 1;
        if (h->store_cut_until_ms > sim->now_ms || sim_happens(sim, 25))
                copies = 0;
        for (uint32_t i = 0; i < copies; i++) {
                struct sim_call *copy = malloc(sizeof(*copy));
                if (!copy)
                        abort();
                *copy = *call;
                uint64_t delay_ms = sim_happens(sim, 30) ? sim_draw(sim, 2 * TTL_MS) : sim_travel_ms(sim);
                sim_at_owned(sim, delay_ms, on_arrival, copy, free);
        }
}

/* Which shard a request is about, and how large it is. */
static void describe(struct sim_call *call, const struct store_request *request)
{
        switch (request->op) {
        case OP_ACQUIRE:
                call->size = sizeof(struct store_acquire);
                call->shard = ((const struct store_acquire *)request)->lease.shard;
                break;
        case OP_IN_FLIGHT:
                call->size = sizeof(struct store_in_flight);
                call->shard = ((const struct store_in_flight *)request)->lease.shard;
                break;
        case OP_ADVANCE:
                call->size = sizeof(struct store_advance);
                call->shard = ((const struct store_advance *)request)->lease.shard;
                break;
        case OP_RELEASE:
                call->size = sizeof(struct store_release);
                call->shard = ((const struct store_release *)request)->lease.shard;
                break;
        case OP_WAKE:
                call->size = sizeof(struct store_wake);
                call->shard = ((const struct store_wake *)request)->lease.shard;
                call->name = sim_store_name_of(((const struct store_wake *)request)->name);
                break;
        case OP_NAMES:
                call->size = sizeof(struct store_names);
                call->shard = ((const struct store_names *)request)->lease.shard;
                call->name = sim_store_name_of(((const struct store_names *)request)->after);
                break;
        case OP_SCHEDULE_LIST:
                call->size = sizeof(struct store_schedule_list);
                call->shard = ((const struct store_schedule_list *)request)->shard;
                break;
        case OP_FIRES:
                call->size = sizeof(struct store_fires);
                call->shard = ((const struct store_fires *)request)->lease.shard;
                break;
        case OP_RENEW:
                call->size = sizeof(struct store_renew);
                call->shard = SHARDS;
                break;
        default:
                sim_fail(call->host->sim, "nobody asks for %s", store_op_name(request->op));
        }
}

static void start(struct store *store, struct store_request *request)
{
        struct sim_host *h = (struct sim_host *)((char *)store - offsetof(struct sim_host, store));
        struct sim *sim = h->sim;
        struct sim_call *call = calloc(1, sizeof(*call));
        struct patience *patience = malloc(sizeof(*patience));
        if (!call || !patience)
                abort();
        if (request->status < 0)
                sim_fail(sim, "host %u asks for what cannot be: %s", h->index, request->error.text);
        *call = (struct sim_call){
                .host = h, .life = h->life, .request = request, .op = request->op, .number = ++sim->next_number
        };
        describe(call, request);
        memcpy(&call->acquire, request, call->size);
        if (call->op == OP_ADVANCE && call->advance.outcomes_count)
                memcpy(call->outcomes, call->advance.outcomes, call->advance.outcomes_count * sizeof(*call->outcomes));
        for (uint32_t i = 0, merged = 0; call->op == OP_ADVANCE && i < call->advance.outcomes_count; i++) {
                const struct store_outcome *o = &call->outcomes[i];
                struct span host;
                call->waits_for[i] = sim_store_name_of(o->name);
                if (o->kind == STORE_START)
                        (void)seat_holder_parse(o->holder, &call->seats[i].fence, call->seats[i].nonce, &host);
                call->merged_from[i] = merged;
                for (uint32_t j = 0; j < o->merged_count; j++)
                        call->merged[merged++] = (uint32_t)o->merged[j].seq - 1;
        }
        if (call->op == OP_FIRES)
                memcpy(call->fired, call->fires.fires, call->fires.fires_count * sizeof(*call->fired));
        if (call->op == OP_RENEW)
                memcpy(call->renewals, call->renew.items, call->renew.items_count * sizeof(*call->renewals));
        if (h->waiting_call[call->shard])
                sim_fail(sim, "host %u makes two calls for shard %u at once", h->index, call->shard);
        h->waiting_call[call->shard] = call->number;
        *patience = (struct patience){ h, request, call->shard, call->number };
        sim_at_host(h, TTL_MS / 2, on_no_answer, patience);
        post(h, call);
        free(call);
}

const struct store_driver sim_store_driver = { .scheme = "sim", .start = start };
