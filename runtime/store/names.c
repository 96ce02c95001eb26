/* Starts the operations of names.h: checks the request, then hands it to the driver. */
#include "store/names.h"

#include "base/numbers.h"
#include "store/request.h"

bool store_name_is_good(struct span name)
{
        for (size_t i = 0; i < name.size; i++)
                if (name.data[i] <= ' ' || name.data[i] > '~')
                        return false;
        return name.size && name.size <= STORE_NAME_MAX;
}

void store_wake(struct store *store, struct store_wake *wake)
{
        request_begin(store, &wake->request, OP_WAKE);
        request_check_lease(&wake->request, &wake->lease);
        if (!store_name_is_good(wake->name))
                request_refuse(&wake->request, "a name is 1 to 200 printable characters without spaces");
        wake->max = (uint32_t)min_u64(wake->max, STORE_CALL_TASKS);
        request_start(&wake->request);
}

void store_names(struct store *store, struct store_names *names)
{
        request_begin(store, &names->request, OP_NAMES);
        request_check_lease(&names->request, &names->lease);
        if (names->after.size && !store_name_is_good(names->after))
                request_refuse(&names->request, "a name is 1 to 200 printable characters without spaces");
        request_start(&names->request);
}
