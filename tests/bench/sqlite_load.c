/* The limits of SQLite alone.  bench.py calls it.
 *
 *         sqlite_load FILE bare normal|full [OPTIONS]       seconds to insert all, and to read and delete them
 *         sqlite_load FILE commits normal|full [OPTIONS]    ms of each insert in a transaction of its own
 *
 * Of the options of load/load.h, --tasks, --payload and --rate count. */
#include <stdio.h>
#include <string.h>

#include "load/bare_sqlite.h"
#include "load/load.h"

int main(int argc, char **argv)
{
        struct load load = { .tasks = 1, .keys = 1, .shards = 1, .payload_bytes = 100 };
        double insert_s;
        double take_s;
        if (argc < 4)
                load_die("usage", "sqlite_load FILE bare|commits normal|full [OPTIONS]: see its source");
        bool is_full = !strcmp(argv[3], "full");
        load_options(argc - 3, argv + 3, &load);
        if (!strcmp(argv[2], "commits")) {
                bare_sqlite_commits(argv[1], is_full, &load);
                return 0;
        }
        bare_sqlite(argv[1], is_full, load.tasks, load.payload_bytes, &insert_s, &take_s);
        (void)printf("%.6f %.6f\n", insert_s, take_s);
        return 0;
}
