/* outages.h: cases of what a driver with servers of its own comes through, and what further cases need. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_OUTAGES_H
#define QUIVER_TESTS_CONTRACT_COORD_OUTAGES_H

#include "harness.h"
#include "proxy.h"

/* A session that no outage of a test outlasts. */
#define LONG_MS 20000

/* The row of the world's driver, whose name is the first member of each; fails the test if there is none. */
const void *row_of(const struct world *w, const void *rows, size_t count, size_t size);
/* Opens a client and waits until its session is alive.  URL NULL: the place's; 0 ms: the place's session. */
struct client *join_for(struct world *w, const char *url, uint64_t session_ms);
struct client *join_at(struct world *w, const char *url);
/* The place's URL with other servers. */
const char *url_with(struct world *w, const char *hosts);
const char *url_through(struct world *w, const char *host, const struct proxy *proxy);
/* This port first or second, and the real server. */
const char *url_beside(struct world *w, uint16_t port, bool is_first);
enum coord_state last_state(const struct client *c);
/* Before the first server. */
struct proxy *server_proxy(void);

void the_granted_time_is_the_servers(void **state);
void a_server_that_hangs_ends_the_session_and_a_new_one_follows(void **state);
void what_an_outage_left_behind_goes_when_the_server_is_back(void **state);
void a_dead_server_in_the_url_is_passed_over(void **state);
void a_hung_server_in_the_url_is_passed_over(void **state);
void a_name_that_does_not_resolve_is_passed_over(void **state);
void nobody_there_is_no_reason_not_to_open(void **state);
void a_loop_that_hangs_loses_its_session(void **state);
void no_descriptor_of_the_client_reaches_a_child(void **state);
void a_wiped_server_gets_a_new_session_and_new_nodes(void **state);

#define OUTAGE_TESTS                                                                                                   \
        IN_WORLD(the_granted_time_is_the_servers),                                                                     \
                IN_WORLD(a_server_that_hangs_ends_the_session_and_a_new_one_follows),                                  \
                IN_WORLD(what_an_outage_left_behind_goes_when_the_server_is_back),                                     \
                IN_WORLD(a_dead_server_in_the_url_is_passed_over), IN_WORLD(a_hung_server_in_the_url_is_passed_over),  \
                IN_WORLD(a_name_that_does_not_resolve_is_passed_over),                                                 \
                IN_WORLD(nobody_there_is_no_reason_not_to_open), IN_WORLD(a_loop_that_hangs_loses_its_session),        \
                IN_WORLD(no_descriptor_of_the_client_reaches_a_child),                                                 \
                IN_WORLD(a_wiped_server_gets_a_new_session_and_new_nodes)

#endif
