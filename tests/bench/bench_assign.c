/* How long the leader thinks: the largest fleet, from nothing and after each kind of change.  Prints a table.
 *
 *         bench_assign [MEMBERS [SHARDS]]        200 members, 4096 shards */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "host/membership/assign_doc.h"

static struct assign_member members[ASSIGN_MEMBERS_MAX];
static struct assignment last;

static void run(const char *what, struct assign_input *input)
{
        struct assign_plan plan;
        struct error error;
        uint64_t start_ns = clock_boot_ns();
        if (assign_plan(last.slots ? &last : NULL, input, &plan, &error)) {
                (void)fprintf(stderr, "bench_assign: %s\n", error.text);
                exit(1);
        }
        uint64_t planned_ns = clock_boot_ns();
        struct buffer text = { 0 };
        struct assignment back;
        if (assign_doc_put(&text, &plan.next, &error) ||
                assign_doc_parse((struct span){ (const char *)text.data, text.size }, &back, &error)) {
                (void)fprintf(stderr, "bench_assign: %s\n", error.text);
                exit(1);
        }
        (void)printf("%-28s %6.2f ms  %5u moves   written and read %6.2f ms  %6zu bytes\n", what,
                (double)(planned_ns - start_ns) / (double)NS_PER_MS, plan.moves_count,
                (double)(clock_boot_ns() - planned_ns) / (double)NS_PER_MS, text.size);
        assignment_free(&last);
        last = back;
        buffer_free(&text);
        assign_plan_free(&plan);
}

int main(int argc, char **argv)
{
        uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 200;
        uint32_t shards = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : SHARDS_MAX;
        if (count < 2 || count > ASSIGN_MEMBERS_MAX)
                return 2;
        for (uint32_t i = 0; i < count; i++) {
                uint32_t scattered = i * UINT32_C(2654435761);
                members[i] = (struct assign_member){ .weight = 1 + i % 7, .sees_store = true, .created = i };
                memcpy(members[i].nonce, &scattered, sizeof(scattered));
                (void)snprintf(members[i].name, sizeof(members[i].name), "host-%u", i);
        }
        struct assign_input input = { .members = members,
                .members_count = count - 1,
                .shards_count = shards,
                .unix_s = clock_wall_ms() / 1000,
                .may_plan = true };
        (void)printf("%u shards, %u members\n", shards, count);
        run("from nothing", &input);
        input.members_count = count;
        run("one joins", &input);
        run("nothing happens", &input);
        members[0].is_draining = true;
        run("one drains", &input);
        for (uint32_t i = 0; i < count; i++)
                members[i].weight = 1000 - members[i].weight * 100;
        run("all weights change", &input);
        input.members_count = count / 2;
        run("half of them crash", &input);
        assignment_free(&last);
        return 0;
}
