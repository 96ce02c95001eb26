/* The ZooKeeper driver on an ensemble of three: what every driver promises there. */
#include "clusters.h"

int main(void)
{
        const struct CMUnitTest tests[] = { CLUSTER_TESTS };
        (void)setenv("QUIVER_COORD_DRIVER", "zookeeper-ensemble", 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
