/* address.h: which addresses may be connected to.
 *
 * A URL may come from somebody who wants to reach what only this machine can reach: its own services, the neighbours,
 * the metadata of a cloud.  So only addresses of the public Internet are allowed, and what `allow` names. */
#ifndef QUIVER_WEBHOOK_ADDRESS_H
#define QUIVER_WEBHOOK_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* A range of addresses.  IPv4 is kept as IPv6 knows it (::ffff:a.b.c.d), so that both spellings are one. */
struct range {
        uint8_t prefix[16];
        unsigned bits;
};

#define RANGES_MAX 64
struct ranges {
        struct range list[RANGES_MAX];
        size_t count;
};

/* "10.0.0.0/8", "192.168.7.1", "fd00::/8".  0 or -EINVAL. */
int range_parse(struct range *r, const char *text);

/* NULL: it may be connected to.  Else what it is: "private", "loopback". */
const char *address_refused(const struct sockaddr *address, const struct ranges *allowed);

/* The same of a text; NULL also if it is no address but a name. */
const char *address_text_refused(const char *text, const struct ranges *allowed);

/* Writes the address as text, without its port. */
#define ADDRESS_TEXT 64
const char *address_text(const struct sockaddr *address, char text[ADDRESS_TEXT]);

#endif
