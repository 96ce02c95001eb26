/* probes.h: fill the figures in.  Each probe changes nothing, ends in a few seconds whatever its servers do, and says
 * in the figures what it could not learn. */
#ifndef QUIVER_CLI_DOCTOR_PROBES_H
#define QUIVER_CLI_DOCTOR_PROBES_H

#include "cli/doctor/figures.h"
#include "cli/doctor/findings.h"
#include "config/config.h"

#define PROBE_MS 3000 /* what one server may take */

/* The Redis of the store, and that of the coordination if it has one of its own. */
void probe_redis(const struct config *config, const struct config_secrets *secrets, struct doctor_figures *to);
/* The certificates of servers with TLS, and our own. */
void probe_certificates(const struct config *config, struct doctor_figures *to);
/* The session, who leads, and the servers of ZooKeeper or etcd. */
void probe_coordination(const struct config *config, struct doctor_figures *to);
/* The store as commands open it: the app, its hosts, its problems. */
void probe_app(const struct config *config, struct doctor_figures *to, struct findings *findings);
/* Those of the host that runs here, if the app's documents name one, else of this command. */
void probe_machine(const struct config *config, struct doctor_figures *to);
void probe_files(const struct config *config, struct doctor_files *to);

void figures_free(struct doctor_figures *figures);

/* A connected socket that does not block, or -errno with the text: at the latest after `limit_ms`. */
int probe_connect(const char *host, uint16_t port, uint64_t limit_ms, struct error *error);
/* Sends `request`, unless it is NULL, and reads until the other side closes, `ret_reply` has `max` bytes, or the time
 * is over.  With TLS if there is a context; *ret_end_s is then when the server's certificates end.  Both may be NULL.
 */
struct tls_context;
int probe_exchange(const struct url_host *host, struct tls_context *tls, const char *request, size_t max,
        struct buffer *ret_reply, uint64_t *ret_end_s, struct error *error);
/* Whether an address is this machine's own: loopback, or a path. */
bool probe_is_here(const char *host);

#endif
