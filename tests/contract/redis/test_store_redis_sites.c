/* What of the store's contract may depend on how Redis is reached, everywhere it can be. */
#include "harness.h"

const struct contract_driver *driver;

#define RUN(name) _cmocka_run_group_tests(#name, name##_tests, name##_count, NULL, NULL)

int main(void)
{
        int failed = 0;
        for (size_t i = 0; i < redis_sites; i++) {
                driver = &redis_site_contracts[i];
                /* Over TLS the same connection is made, and more happens on it. */
                if (!strcmp(driver->name, "redis-tcp") && !getenv("QUIVER_TEST_ALL"))
                        continue;
                (void)printf("# %s\n", driver->name);
                failed +=
                        RUN(order) + RUN(fence) + RUN(outcome) + RUN(idempotency) + RUN(mail) + RUN(names) + RUN(room);
                failed += RUN(limit) + RUN(schedule);
                failed += RUN(window);
        }
        return failed ? 1 : 0;
}
