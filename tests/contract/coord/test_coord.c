/* The contract of coord.h, on the driver that QUIVER_COORD_DRIVER names. */
#include "harness.h"

int main(void)
{
        return run_suite();
}
