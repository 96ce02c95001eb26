/* end_session.c: ends the session of a process that is gone, from outside. */
#include "coord/local/end_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/memory.h"
#include "base/strings.h"
#include "coord/driver.h"
#include "coord/local/bell.h"
#include "coord/local/replica.h"

struct local_session_end {
        uv_work_t work;
        struct coord_end_session *end;
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

static int end_session(struct local_session_end *ending, struct replica *replica, const struct folder *folder)
{
        const struct tree_session *session = tree_session_find(&replica->tree, ending->nonce);
        if (!session)
                return 0; /* the session has already ended */
        int r = replica_session_end(replica, session->id, &ending->error);
        if (!r)
                r = log_sync(&replica->log, &ending->error);
        local_bell_ring(folder, &replica->tree, 0);
        return r;
}

static void work(uv_work_t *request)
{
        struct local_session_end *ending = request->data;
        struct folder folder;
        struct replica replica;
        if (ending->status)
                return;
        ending->status = folder_open(&folder, ending->where, ending->app, &ending->error);
        if (ending->status)
                return;
        ending->status = replica_open(&replica, folder.fd, &ending->error);
        if (!ending->status) {
                ending->status = end_session(ending, &replica, &folder);
                replica_close(&replica);
        }
        folder_close(&folder);
}

static void worked(uv_work_t *request, int status)
{
        struct local_session_end *ending = request->data;
        struct coord_end_session *end = ending->end;
        int r = status ? -ECANCELED : ending->status;
        end->request.error = ending->error;
        free(ending->where);
        free(ending->app);
        free(ending);
        coord_finish(&end->request, r);
}

void local_end_session(struct uv_loop_s *loop, struct coord_end_session *end)
{
        struct local_session_end *ending = memory_zero(1, sizeof(*ending));
        const char *colon = end->options.url ? strchr(end->options.url, ':') : NULL;
        ending->work.data = ending;
        ending->end = end;
        ending->status = end->request.status;
        ending->error = end->request.error;
        ending->where = text_copy(colon ? colon + 1 : "");
        ending->app = text_copy(end->options.app ? end->options.app : "");
        if (!ending->status && !parse_token(end->token, ending->nonce))
                ending->status = error_set(&ending->error, -EINVAL, "end session: not the token of a local session");
        if (uv_queue_work(loop, &ending->work, work, worked) != 0)
                abort();
}
