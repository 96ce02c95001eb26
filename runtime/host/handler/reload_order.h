/* reload_order.h: an order to reload that came through the store (`quiver reload --all`), and its progress.
 *
 * The desired state `reload.NONCE` names the host by its nonce, and its value is a token.  The host reloads once per
 * token and reports in its status document:
 *
 *         "reload": {"token": "9c…", "state": "decided", "failed": false,
 *                    "plan": "mail: new generation: file", "text": "mail: good"}
 *
 *         asked → refused                    the file has a mistake, or a handler was refused
 *               → taken → decided            the fate of every new version is known
 *
 * A nonce is new at every start, so a host never finds an order that is older than its configuration.  Plain data, no
 * I/O. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_ORDER_H
#define QUIVER_HOST_HANDLER_RELOAD_ORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/admin.h"

#define RELOAD_ORDER_NAME "reload." /* followed by the nonce, as text */
#define RELOAD_TOKEN_MAX  64u
#define RELOAD_ORDER_TEXT 512u /* bytes; the status document has little room */

enum reload_order_state { ORDER_NONE, ORDER_ASKED, ORDER_REFUSED, ORDER_TAKEN, ORDER_DECIDED };

struct reload_order {
        enum reload_order_state state;
        uint32_t number; /* of the latest order, counted from 1 */
        bool has_failed;
        char token[RELOAD_TOKEN_MAX + 1];
        char plan[RELOAD_ORDER_TEXT + 1]; /* the plan that was taken */
        char text[RELOAD_ORDER_TEXT + 1]; /* why the order was refused, or what became of the new versions */
};

/* The desired state was read.  True: there is a new order for the host with that nonce, with the number
 * order->number. */
bool reload_order_find(struct reload_order *order, const char *nonce, const struct store_desired *items, size_t count);

/* Takes the answer of reload_ask(), and later of reload_await(), to the order of that number.  True: the plan was
 * taken, and the caller awaits reload *ret_reload.  Ignores answers to an order that was replaced. */
bool reload_order_answer(struct reload_order *order, uint32_t number, const json_t *reply, uint32_t *ret_reload);

/* Adds "reload" to a status document, if there was an order. */
void reload_order_put(const struct reload_order *order, json_t *document);

#endif
