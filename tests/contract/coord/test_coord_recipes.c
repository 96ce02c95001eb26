/* Membership, leadership, locks and slots above the tree, on the driver that QUIVER_COORD_DRIVER names. */
#include "harness.h"

int main(void)
{
        return _cmocka_run_group_tests("recipes", recipe_tests, recipe_count, NULL, NULL) +
               _cmocka_run_group_tests("slots", slot_tests, slot_count, NULL, NULL) +
               _cmocka_run_group_tests("locks", lock_tests, lock_count, NULL, NULL) +
               _cmocka_run_group_tests("services", service_tests, service_count, NULL, NULL);
}
