/* clusters.h: cases of what a driver promises on three servers. */
#ifndef QUIVER_TESTS_CONTRACT_COORD_CLUSTERS_H
#define QUIVER_TESTS_CONTRACT_COORD_CLUSTERS_H

#include "harness.h"

void the_tree_works_on_three_servers(void **state);
void a_session_is_ended_by_its_token(void **state);
void three_servers_lose_their_leader_then_their_quorum_and_heal(void **state);

#define CLUSTER_TESTS                                                                                                  \
        IN_WORLD(the_tree_works_on_three_servers), IN_WORLD(a_session_is_ended_by_its_token),                          \
                IN_WORLD(three_servers_lose_their_leader_then_their_quorum_and_heal)

#endif
