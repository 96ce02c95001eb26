/* A folder as the authority.  It is cut off by moving it away: nobody can see it then, and nothing in it is lost. */
#include "harness.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder_place {
        char above[64];
        char folder[80];
        char away[80];
        char url[96];
};

static void *place_create(void)
{
        struct folder_place *p = calloc(1, sizeof(*p));
        assert_non_null(p);
        (void)snprintf(p->above, sizeof(p->above), "/tmp/quiver-coord-XXXXXX");
        assert_non_null(mkdtemp(p->above));
        (void)snprintf(p->folder, sizeof(p->folder), "%s/var", p->above);
        (void)snprintf(p->away, sizeof(p->away), "%s/away", p->above);
        (void)snprintf(p->url, sizeof(p->url), "local:%s", p->folder);
        assert_int_equal(mkdir(p->folder, 0700), 0);
        return p;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static void place_destroy(void *place)
{
        struct folder_place *p = place;
        (void)nftw(p->above, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(p);
}

static void place_options(void *place, struct coord_options *options)
{
        options->url = ((struct folder_place *)place)->url;
}

static void place_cut(void *place)
{
        struct folder_place *p = place;
        assert_int_equal(rename(p->folder, p->away), 0);
        /* Nor can a new one be made in its place. */
        FILE *f = fopen(p->folder, "we");
        assert_non_null(f);
        (void)fclose(f);
}

static void place_heal(void *place)
{
        struct folder_place *p = place;
        assert_int_equal(unlink(p->folder), 0);
        assert_int_equal(rename(p->away, p->folder), 0);
}

const struct place_driver local_place = {
        .name = "local",
        .create = place_create,
        .destroy = place_destroy,
        .options = place_options,
        .cut = place_cut,
        .heal = place_heal,
        .session_ms = 600,
        .notices_death = true,
};
