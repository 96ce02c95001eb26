#include "host/harden.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

void harden_process(void)
{
        const char *cores = getenv("QUIVER_CORES");
        (void)umask(077);
        if (!cores || strcmp(cores, "1") != 0)
                (void)prctl(PR_SET_DUMPABLE, 0);
}
