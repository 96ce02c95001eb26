#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPPED_BITS 96 /* of ::ffff:0:0/96, before the 32 of IPv4 */

/* What IANA's registries of special addresses have that is not for everybody on the Internet. */
static const struct {
        const char *range, *what;
} special[] = {
        { "0.0.0.0/8", "this network" },
        { "10.0.0.0/8", "private" },
        { "100.64.0.0/10", "shared by a provider's customers" },
        { "127.0.0.0/8", "loopback" },
        { "169.254.0.0/16", "link-local" },
        { "172.16.0.0/12", "private" },
        { "192.0.0.0/24", "reserved" },
        { "192.0.2.0/24", "for documentation" },
        { "192.88.99.0/24", "reserved" },
        { "192.168.0.0/16", "private" },
        { "198.18.0.0/15", "for benchmarks" },
        { "198.51.100.0/24", "for documentation" },
        { "203.0.113.0/24", "for documentation" },
        { "224.0.0.0/4", "multicast" },
        { "240.0.0.0/4", "reserved" },
        { "::/128", "unspecified" },
        { "::1/128", "loopback" },
        { "fc00::/7", "private" },
        { "fe80::/10", "link-local" },
        { "fec0::/10", "private" },
        { "ff00::/8", "multicast" },
        { "2001::/23", "reserved" },
        { "2001:db8::/32", "for documentation" },
        { "2002::/16", "a tunnel to another address" },
        { "3fff::/20", "for documentation" },
};

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
/* 64:ff9b::/96: how networks without IPv4 reach an IPv4 address, which is what counts then. */
static const uint8_t translated[12] = { 0, 0x64, 0xff, 0x9b };

static int parse(const char *text, uint8_t bytes[16], bool *ret_is_v4)
{
        *ret_is_v4 = inet_pton(AF_INET, text, bytes + 12) == 1;
        if (*ret_is_v4)
                memcpy(bytes, mapped, sizeof(mapped));
        else if (inet_pton(AF_INET6, text, bytes) != 1)
                return -EINVAL;
        return 0;
}

int range_parse(struct range *r, const char *text)
{
        char address[INET6_ADDRSTRLEN];
        struct range parsed = { .bits = 128 };
        size_t size = strcspn(text, "/");
        bool is_v4;
        if (size >= sizeof(address))
                return -EINVAL;
        memcpy(address, text, size);
        address[size] = 0;
        if (parse(address, parsed.prefix, &is_v4) < 0)
                return -EINVAL;
        if (text[size]) {
                char *end;
                const char *number = text + size + 1;
                unsigned long bits = strtoul(number, &end, 10);
                if (*number < '0' || *number > '9' || *end || bits > (is_v4 ? 32 : 128))
                        return -EINVAL;
                parsed.bits = (unsigned)bits + (is_v4 ? MAPPED_BITS : 0);
        }
        *r = parsed;
        return 0;
}

static bool is_in(const uint8_t address[16], const struct range *r)
{
        unsigned bytes = r->bits / 8, rest = r->bits % 8;
        if (memcmp(address, r->prefix, bytes) != 0)
                return false;
        return !rest || (address[bytes] ^ r->prefix[bytes]) >> (8 - rest) == 0;
}

static const char *refused(const uint8_t given[16], const struct ranges *allowed)
{
        uint8_t address[16];
        memcpy(address, given, sizeof(address));
        if (!memcmp(address, translated, sizeof(translated)))
                memcpy(address, mapped, sizeof(mapped));
        for (size_t i = 0; i < allowed->count; i++)
                if (is_in(address, &allowed->list[i]))
                        return NULL;
        for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
                struct range range;
                if (range_parse(&range, special[i].range) == 0 && is_in(address, &range))
                        return special[i].what;
        }
        /* Of IPv6 only 2000::/3 was ever given out. */
        if (memcmp(address, mapped, sizeof(mapped)) != 0 && address[0] >> 5 != 1)
                return "reserved";
        return NULL;
}

const char *address_refused(const struct sockaddr *address, const struct ranges *allowed)
{
        uint8_t bytes[16];
        if (address->sa_family == AF_INET6) {
                struct sockaddr_in6 in6;
                memcpy(&in6, address, sizeof(in6));
                return refused(in6.sin6_addr.s6_addr, allowed);
        }
        if (address->sa_family != AF_INET)
                return "of an unknown family";
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        memcpy(bytes, mapped, sizeof(mapped));
        memcpy(bytes + sizeof(mapped), &in.sin_addr, 4);
        return refused(bytes, allowed);
}

const char *address_text_refused(const char *text, const struct ranges *allowed)
{
        uint8_t bytes[16];
        bool is_v4;
        return parse(text, bytes, &is_v4) < 0 ? NULL : refused(bytes, allowed);
}

const char *address_text(const struct sockaddr *address, char text[ADDRESS_TEXT])
{
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        (void)snprintf(text, ADDRESS_TEXT, "an unknown address");
        if (address->sa_family == AF_INET) {
                memcpy(&in, address, sizeof(in));
                (void)inet_ntop(AF_INET, &in.sin_addr, text, ADDRESS_TEXT);
        } else if (address->sa_family == AF_INET6) {
                memcpy(&in6, address, sizeof(in6));
                (void)inet_ntop(AF_INET6, &in6.sin6_addr, text, ADDRESS_TEXT);
        }
        return text;
}
