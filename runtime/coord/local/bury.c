/* Ends the session of a process that is gone, from outside. */
#include "coord/local/bury.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "coord/driver.h"
#include "coord/local/bell.h"
#include "coord/local/replica.h"

struct burial {
        uv_work_t work;
        struct coord_bury *bury;
        char *where;
        char *app;
        uint8_t nonce[TREE_NONCE_SIZE];
        int status;
        struct error error;
};

static bool parse_token(const char *token, uint8_t nonce[TREE_NONCE_SIZE])
{
        if (strlen(token) != (size_t)2 * TREE_NONCE_SIZE || strspn(token, "0123456789abcdef") != strlen(token))
                return false;
        for (unsigned i = 0; i < TREE_NONCE_SIZE; i++)
                if (sscanf(token + (size_t)2 * i, "%2hhx", &nonce[i]) != 1)
                        return false;
        return true;
}

static int end_session(struct burial *burial, struct replica *replica, const struct folder *folder)
{
        const struct tree_session *session = tree_session_find(&replica->tree, burial->nonce);
        if (!session)
                return 0; /* has ended */
        int r = replica_session_end(replica, session->id, &burial->error);
        if (!r)
                r = log_sync(&replica->log, &burial->error);
        local_bell_ring(folder, &replica->tree, 0);
        return r;
}

static void work(uv_work_t *request)
{
        struct burial *burial = request->data;
        struct folder folder;
        struct replica replica;
        if (burial->status)
                return;
        burial->status = folder_open(&folder, burial->where, burial->app, &burial->error);
        if (burial->status)
                return;
        burial->status = replica_open(&replica, folder.fd, &burial->error);
        if (!burial->status) {
                burial->status = end_session(burial, &replica, &folder);
                replica_close(&replica);
        }
        folder_close(&folder);
}

static void worked(uv_work_t *request, int status)
{
        struct burial *burial = request->data;
        struct coord_bury *bury = burial->bury;
        int r = status ? -ECANCELED : burial->status;
        bury->request.error = burial->error;
        free(burial->where);
        free(burial->app);
        free(burial);
        coord_finish(&bury->request, r);
}

void local_bury(struct uv_loop_s *loop, struct coord_bury *bury)
{
        struct burial *burial = calloc(1, sizeof(*burial));
        const char *colon = bury->options.url ? strchr(bury->options.url, ':') : NULL;
        if (!burial)
                abort();
        burial->work.data = burial;
        burial->bury = bury;
        burial->status = bury->request.status;
        burial->error = bury->request.error;
        burial->where = strdup(colon ? colon + 1 : "");
        burial->app = strdup(bury->options.app ? bury->options.app : "");
        if (!burial->status && !parse_token(bury->token, burial->nonce))
                burial->status = error_set(&burial->error, -EINVAL, "bury: not the token of a local session");
        if (uv_queue_work(loop, &burial->work, work, worked) != 0)
                abort();
}
