#include "runner/output.h"

#include <stdio.h>

void output_init(void)
{
        (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

void output_flush(void)
{
        if (ftrylockfile(stdout) != 0)
                return;
        (void)fflush_unlocked(stdout);
        funlockfile(stdout);
}
