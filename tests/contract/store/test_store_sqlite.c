/* The store's contract on SQLite. */
#include "harness.h"

const struct contract_driver *driver = &sqlite_contract;

#define RUN(name) _cmocka_run_group_tests(#name, name##_tests, name##_count, NULL, NULL)

int main(void)
{
        int failed = RUN(open) + RUN(order) + RUN(fence) + RUN(side) + RUN(outcome) + RUN(result) + RUN(admin) +
                     RUN(import) + RUN(grow) + RUN(app) + RUN(bell);
        failed += RUN(limit) + RUN(schedule) + RUN(file_schedule) + RUN(results_act) + RUN(window);
        failed += RUN(idempotency) + RUN(mail) + RUN(names) + RUN(report) + RUN(room) + RUN(look) + RUN(merge);
        failed += RUN(intervene) + RUN(move);
        return failed ? 1 : 0;
}
