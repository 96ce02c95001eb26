/* recipes.h: shared by locks, elections and members of the client library. */
#ifndef QUIVER_CLIENT_RECIPES_H
#define QUIVER_CLIENT_RECIPES_H

#include "base/error.h"
#include "coord/queue.h"

struct client_call;

#define RECIPE_NONCE_SIZE 33u

/* 0, or -EINVAL with the text set if the name is invalid. */
int client_recipe_check(const char *name, struct error *error);
/* Makes a new nonce. */
void client_recipe_nonce(char ret_nonce[RECIPE_NONCE_SIZE]);
/* The text about us in a node, for people: machine, process, since when, and why (NULL: the program's name). */
void client_recipe_says(char ret_says[QUEUE_SAYS_MAX], const char *reason);
/* Ends a call that waits for the client's thread; its status is set. */
void client_recipe_answer(struct client_call *call);

#endif
