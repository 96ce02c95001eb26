/* reload_order.h: an order to reload that came through the store (`quiver reload --all`), and what became of it.
 *
 * The desired state names the host by its nonce, `reload.NONCE`, and its value is a token.  The host reloads once for
 * each token, and its status document says how that went:
 *
 *         "reload":{"token":"9c…","state":"decided","failed":false,"plan":"mail: new generation: file","text":"mail:
 * good"}
 *
 *         asked → refused                    the file has a mistake, or a handler was refused
 *               → taken → decided            it is known what became of every version that it brought
 *
 * A nonce is new at every start, so that no host finds an order that was given before it read its file.  Plain data, no
 * I/O. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_ORDER_H
#define QUIVER_HOST_HANDLER_RELOAD_ORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/admin.h"

#define RELOAD_ORDER_NAME "reload." /* followed by the nonce, as text */
#define RELOAD_TOKEN_MAX  64u
#define RELOAD_ORDER_TEXT 512u /* bytes; the document has little room */

enum reload_order_state { ORDER_NONE, ORDER_ASKED, ORDER_REFUSED, ORDER_TAKEN, ORDER_DECIDED };

struct reload_order {
        enum reload_order_state state;
        uint32_t number; /* of the latest, counted from 1 */
        bool has_failed;
        char token[RELOAD_TOKEN_MAX + 1];
        char plan[RELOAD_ORDER_TEXT + 1]; /* that was taken */
        char text[RELOAD_ORDER_TEXT + 1]; /* why it was refused, or what became of it */
};

/* The desired state was read.  True: there is a new order for the host with that nonce; order->number names it. */
bool reload_order_find(struct reload_order *order, const char *nonce, const struct store_desired *items, size_t count);

/* What reload_ask() and then reload_await() answered to the order of that number.  True: the plan was taken, and it is
 * to be seen what becomes of *ret_reload.  Answers to an order that another has replaced are passed over. */
bool reload_order_answer(struct reload_order *order, uint32_t number, const json_t *reply, uint32_t *ret_reload);

/* Adds "reload" to a status document, if there was an order. */
void reload_order_put(const struct reload_order *order, json_t *document);

#endif
