#include "coord/zookeeper/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/strings.h"

static void put_addresses(struct buffer *list, const struct addrinfo *found, uint16_t port)
{
        for (const struct addrinfo *at = found; at; at = at->ai_next) {
                char address[NI_MAXHOST];
                if (!getnameinfo(at->ai_addr, at->ai_addrlen, address, sizeof(address), NULL, 0, NI_NUMERICHOST))
                        buffer_printf(list, "%s%s:%u", list->size ? "," : "", address, port);
        }
}

char *zk_resolve(const struct url *url, struct error *error)
{
        struct buffer list = { 0 };
        const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
        (void)error_set(error, 0, "no address");
        for (size_t i = 0; i < url->hosts_count; i++) {
                const struct url_host *host = &url->hosts[i];
                struct addrinfo *found = NULL;
                int r = getaddrinfo(host->name, NULL, &hints, &found);
                if (r) {
                        const char *reason = r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r);
                        (void)error_set(error, 0, "%s: %s", host->name, reason);
                        log_event(LEVEL_WARN, "zookeeper-name", "host=%s error=%s", LOG_QUOTE(host->name),
                                LOG_QUOTE(reason));
                        continue;
                }
                put_addresses(&list, found, host->port);
                freeaddrinfo(found);
        }
        char *made = list.size ? text_copy(buffer_text(&list)) : NULL;
        buffer_free(&list);
        return made;
}
