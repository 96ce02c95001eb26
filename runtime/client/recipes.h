/* recipes.h: what locks, elections and members of the client library have in common. */
#ifndef QUIVER_CLIENT_RECIPES_H
#define QUIVER_CLIENT_RECIPES_H

#include "base/error.h"
#include "coord/queue.h"

struct client_call;

#define RECIPE_NONCE_SIZE 33u

/* 0, or -EINVAL with the text set: it cannot be a name. */
int client_recipe_check(const char *name, struct error *error);
/* A new one. */
void client_recipe_nonce(char ret_nonce[RECIPE_NONCE_SIZE]);
/* What a place says to people who look: machine, process, since when, and what for (NULL: the program's name). */
void client_recipe_says(char ret_says[QUEUE_SAYS_MAX], const char *reason);
/* Ends a call that has waited for the client's thread; its status is set. */
void client_recipe_answer(struct client_call *call);

#endif
