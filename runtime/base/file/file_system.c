#include "base/file/file_system.h"

#include <stddef.h>

static const struct {
        unsigned long type;
        const char *name;
} network_file_systems[] = {
        { 0x6969, "NFS" },
        { 0x517b, "SMB" },
        { 0xff534d42, "CIFS" },
        { 0xfe534d42, "SMB2" },
        { 0x00c36400, "Ceph" },
        { 0x5346414f, "AFS" },
        { 0x01021997, "9P" },
        { 0x01161970, "GFS2" },
        { 0x7461636f, "OCFS2" },
        { 0x0bd00bd0, "Lustre" },
};

const char *file_system_network_name(unsigned long type)
{
        for (size_t i = 0; i < sizeof(network_file_systems) / sizeof(network_file_systems[0]); i++)
                if (type == network_file_systems[i].type)
                        return network_file_systems[i].name;
        return NULL;
}
