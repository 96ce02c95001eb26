/* client_log.h: the ZooKeeper client's own log lines as lines of ours. */
#ifndef QUIVER_COORD_ZOOKEEPER_CLIENT_LOG_H
#define QUIVER_COORD_ZOOKEEPER_CLIENT_LOG_H

/* Sets the client's log level from ours.  Never debug: the client's debug lines read freed memory (ZOOKEEPER-4809). */
void zk_client_log_level(void);

/* For zookeeper_init2().  On any thread. */
void zk_client_log(const char *message);

#endif
