/* Tasks as another store had them. */
#include "store/redis/redis_store.h"

void redis_import(struct redis_store *s, struct store_request *request)
{
        const struct store_import *import = (const struct store_import *)request;
        struct call *call = call_script(op_begin(s, request), SCRIPT_import, import->shard, 8 * import->items_count);
        for (uint32_t i = 0; i < import->items_count; i++) {
                const struct store_moved *item = &import->items[i];
                call_put_number(call, item->state);
                call_put_number(call, item->lane);
                call_put(call, item->bytes);
                call_put(call, item->note);
                call_put_number(call, item->state == STATE_DEAD ? item->at_ms : item->due_in_ms);
                call_put(call, item->id);
                call_put(call, item->handler);
                call_put(call, item->reason);
        }
        call_send(call);
}
