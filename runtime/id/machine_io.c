#include "id/machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* The addresses of RFC 1918. */
static bool is_private(uint32_t address)
{
        return address >> 24 == 10 || address >> 20 == (172 << 4 | 1) || address >> 16 == (192 << 8 | 168);
}

static int own_address(uint32_t *ret_address, struct error *error)
{
        struct ifaddrs *all;
        bool is_found = false;
        if (getifaddrs(&all) < 0)
                return error_set(error, -errno, "ids.machine = \"address\": %s", strerror(errno));
        for (const struct ifaddrs *one = all; one && !is_found; one = one->ifa_next) {
                if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK))
                        continue;
                uint32_t address = ntohl(((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr.s_addr);
                if (is_private(address)) {
                        *ret_address = address;
                        is_found = true;
                }
        }
        freeifaddrs(all);
        return is_found ? 0
                        : error_set(error, -EADDRNOTAVAIL,
                                  "ids.machine = \"address\": this machine has no private IPv4 address; name a number");
}

int id_machine(const char *setting, const struct id_layout *layout, uint32_t *ret_number, struct error *error)
{
        uint64_t numbers = UINT64_C(1) << layout->slot_bits;
        uint32_t address = 0;
        if (!strcmp(setting, "address")) {
                int r = own_address(&address, error);
                if (r == 0)
                        *ret_number = address & (uint32_t)(numbers - 1);
                return r;
        }
        char *end;
        unsigned long number = strtoul(setting, &end, 10);
        if (!*setting || *end || number >= numbers)
                return error_set(error, -EINVAL, "ids.machine: %s is no slot; they are 0 to %llu, or \"address\"",
                        setting, (unsigned long long)numbers - 1);
        *ret_number = (uint32_t)number;
        return 0;
}
