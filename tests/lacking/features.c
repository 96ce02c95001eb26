/* The features of a build that lacks one: those of the real table but the one that QUIVER_LACKS names, or none of them
 * if that is "all".  Linked before the library, it takes the place of that table.  tests/e2e/fleet/test_app.py runs it
 * beside the real build. */
#define store_features       real_features
#define store_features_count real_features_count
#include "../../runtime/store/features.c"
#undef store_features
#undef store_features_count

#include <stdlib.h>
#include <string.h>

/* To the rest of the program they are constants: nothing has read them before main(). */
extern struct store_feature store_features[];
extern size_t store_features_count;
struct store_feature store_features[STORE_FEATURES_MAX];
size_t store_features_count;

__attribute__((constructor)) static void leave_out(void)
{
        const char *lacks = getenv("QUIVER_LACKS");
        for (size_t i = 0; i < real_features_count; i++)
                if (!lacks || (strcmp(lacks, "all") != 0 && strcmp(lacks, real_features[i].name) != 0))
                        store_features[store_features_count++] = real_features[i];
}
