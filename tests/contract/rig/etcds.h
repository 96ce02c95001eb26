/* etcds.h: real etcd servers for tests. */
#ifndef QUIVER_TESTS_CONTRACT_ETCDS_H
#define QUIVER_TESTS_CONTRACT_ETCDS_H

#include "ensemble.h"

extern const struct ensemble_kind etcd_kind;

/* One that speaks TLS: the folder has ca.pem, and cert.pem and key.pem of the server, which are for 127.0.0.1. */
void etcds_start_tls(struct ensemble *e);
/* etcdctl with these words (of the shell), at one server; its output.  Fails the program if it fails. */
const char *etcds_ctl(const struct ensemble *e, unsigned server, const char *words);

#endif
