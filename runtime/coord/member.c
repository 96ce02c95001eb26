#include "coord/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void tend(struct member *m);
static void list(struct member *m);

static struct member *member_of(struct coord_request *request)
{
        return container_of(request, struct member, request);
}

/* --- our own node ----------------------------------------------------------------------------------------------------
 *
 * An answer may be lost, and an old session's node may still be there.  So nothing is assumed: each answer leaves a
 * fact, and tend() does what the facts call for. */

static void on_set(struct coord_request *request)
{
        struct member *m = member_of(request);
        m->is_busy = false;
        if (request->status == 0)
                m->told_edition = m->sent_edition;
        else
                m->is_there = false; /* read the node again */
        if (request->status == 0 || request->status == -ENOENT)
                tend(m);
}

static void on_created(struct coord_request *request)
{
        struct member *m = member_of(request);
        m->is_busy = false;
        if (request->status == 0 && m->create.stat.owner == m->session) {
                m->is_there = true;
                m->is_watched = false;
                m->told_edition = m->sent_edition;
        }
        if (request->status == 0 || request->status == -EEXIST)
                tend(m);
}

static void on_deleted(struct coord_request *request)
{
        struct member *m = member_of(request);
        m->is_busy = false;
        if (request->status != 0 && request->status != -ENOENT)
                return;
        m->is_there = false;
        if (m->is_wanted)
                tend(m);
}

/* Copies the data for the request, because it may change while the request is under way. */
static struct span send_data(struct member *m)
{
        m->is_busy = true;
        m->sent_edition = m->data_edition;
        buffer_clear(&m->sending);
        buffer_put(&m->sending, m->data.data, m->data.size);
        return (struct span){ (const char *)m->sending.data, m->sending.size };
}

static void create(struct member *m)
{
        struct span data = send_data(m);
        m->create = (struct coord_create){
                .request.done = on_created, .path = m->path, .data = data, .flags = COORD_EPHEMERAL
        };
        coord_create(m->coord, &m->create);
}

static void delete (struct member *m)
{
        m->is_busy = true;
        m->delete = (struct coord_delete){ .request.done = on_deleted, .path = m->path, .version = COORD_ANY_VERSION };
        coord_delete(m->coord, &m->delete);
}

static void on_got(struct coord_request *request)
{
        struct member *m = member_of(request);
        m->is_busy = false;
        if (!m->session || (request->status < 0 && request->status != -ENOENT && request->status != -EBADMSG))
                return;
        if (request->status == -ENOENT) {
                m->is_there = false;
                create(m);
        } else if (request->status == -EBADMSG || m->get.stat.owner != m->session) {
                delete (m); /* a node of an earlier session, or one that no session holds */
        } else {
                if (!m->is_there)
                        m->told_edition = 0; /* overwrite it, whatever version it has */
                m->is_there = m->is_watched = true;
                tend(m);
        }
}

static void tend(struct member *m)
{
        if (m->is_busy || !m->session || !*m->path)
                return;
        if (!m->is_wanted) {
                if (m->is_there)
                        delete (m);
        } else if (!m->is_there || !m->is_watched) {
                m->is_busy = true;
                m->get = (struct coord_get){ .request.done = on_got, .path = m->path, .watch = true };
                coord_get(m->coord, &m->get);
        } else if (m->told_edition != m->data_edition) {
                struct span data = send_data(m);
                m->set = (struct coord_set){
                        .request.done = on_set, .path = m->path, .data = data, .version = COORD_ANY_VERSION
                };
                coord_set(m->coord, &m->set);
        }
}

void member_set(struct member *m, struct span data)
{
        buffer_clear(&m->data);
        buffer_put(&m->data, data.data, data.size);
        m->data_edition++;
        m->is_wanted = true;
        tend(m);
}

void member_leave(struct member *m)
{
        m->is_wanted = false;
        tend(m);
}

bool member_is_settled(const struct member *m)
{
        return m->is_wanted ? m->is_there && m->is_watched && m->told_edition == m->data_edition
                            : !m->is_there && !m->is_busy;
}

/* --- the other members --- */

static const char *name_of(const struct member_mate *mate)
{
        return mate->path + strlen(mate->of->group) + 1;
}

static void ask_mate(struct member_mate *mate);

static void drop_mate(struct member_mate *mate)
{
        struct member *m = mate->of;
        if (mate->is_told)
                m->events->left(m->self, name_of(mate));
        mate->is_told = false;
        mate->is_listed = false;
        if (mate->is_getting)
                return; /* a request about it is under way; its answer frees the mate */
        HASH_DEL(m->mates, mate);
        free(mate);
}

/* A node that no session holds would never go away, so it does not count as a member until it changes. */
static void ignore_mate(struct member_mate *mate)
{
        struct member *m = mate->of;
        if (mate->is_told)
                m->events->left(m->self, name_of(mate));
        mate->is_told = false;
        mate->is_ignored = true;
        if (mate->is_stale)
                ask_mate(mate);
}

static void tell_known(struct member *m, bool is_known)
{
        if (m->is_known == is_known)
                return;
        m->is_known = is_known;
        m->events->known(m->self, is_known);
}

/* Reports that all members are known once no request is under way. */
static void check_known(struct member *m)
{
        bool is_settled = m->is_following && !m->is_listing && !m->must_list && !m->getting;
        for (const struct member_mate *mate = m->mates; mate && is_settled; mate = mate->hh.next)
                is_settled = (mate->is_told || mate->is_ignored) && !mate->is_stale;
        if (is_settled)
                tell_known(m, true);
}

static void tell_mate(struct member_mate *mate)
{
        struct member *m = mate->of;
        const struct coord_stat *stat = &mate->get.stat;
        bool is_other = mate->is_told && mate->created != stat->created;
        if (is_other)
                m->events->left(m->self, name_of(mate));
        if (!mate->is_told || is_other)
                m->events->joined(m->self, name_of(mate), stat->created, mate->get.data);
        else if (mate->version != stat->version)
                m->events->changed(m->self, name_of(mate), stat->created, mate->get.data);
        mate->is_told = true;
        mate->is_ignored = false;
        mate->created = stat->created;
        mate->version = stat->version;
}

static void on_mate(struct coord_request *request)
{
        struct member_mate *mate = container_of(request, struct member_mate, get.request);
        struct member *m = mate->of;
        int status = request->status; /* the request is part of the mate */
        mate->is_getting = false;
        m->getting--;
        if (!mate->is_listed || status == -ENOENT) {
                /* A listed node was deleted after it was listed.  If it is made again, the list changes, too. */
                drop_mate(mate);
        } else if (status == 0 && mate->get.stat.owner) {
                tell_mate(mate);
                if (mate->is_stale)
                        ask_mate(mate);
        } else if (status == 0 || status == -EBADMSG) {
                ignore_mate(mate);
        } else {
                mate->is_stale = true;
        }
        if (status != -ECANCELED)
                check_known(m);
}

static void ask_mate(struct member_mate *mate)
{
        struct member *m = mate->of;
        if (mate->is_getting || !m->session) {
                mate->is_stale = true;
                return;
        }
        mate->is_getting = true;
        mate->is_stale = false;
        m->getting++;
        mate->get = (struct coord_get){ .request.done = on_mate, .path = mate->path, .watch = true };
        coord_get(m->coord, &mate->get);
}

static struct member_mate *find_mate(const struct member *m, const char *path)
{
        struct member_mate *mate = NULL;
        HASH_FIND_STR(m->mates, path, mate);
        return mate;
}

static void note_listed(struct member *m, const char *name)
{
        char path[COORD_PATH_MAX];
        if (snprintf(path, sizeof(path), "%s/%s", m->group, name) >= (int)sizeof(path))
                return;
        struct member_mate *mate = find_mate(m, path);
        if (!mate) {
                mate = memory_zero(1, sizeof(*mate));
                memcpy(mate->path, path, sizeof(path));
                mate->of = m;
                mate->is_stale = true;
                HASH_ADD_STR(m->mates, path, mate);
        }
        mate->is_listed = true;
}

/* A member that is missing in the list has left.  A list has no creation ids, so every node that may have been made
 * again must be read. */
static void diff(struct member *m, bool is_look)
{
        struct member_mate *mate;
        struct member_mate *next;
        for (mate = m->mates; mate; mate = mate->hh.next)
                mate->is_listed = false;
        for (uint32_t i = 0; i < m->children.names_count; i++)
                note_listed(m, m->children.names[i]);
        HASH_ITER (hh, m->mates, mate, next) {
                if (!mate->is_listed)
                        drop_mate(mate);
                else if (mate->is_stale || is_look)
                        ask_mate(mate);
        }
}

static void on_listed(struct coord_request *request)
{
        struct member *m = container_of(request, struct member, children.request);
        bool is_look = m->is_looking;
        m->is_listing = false;
        if (request->status < 0) {
                m->must_list = true;
                return;
        }
        if (!m->is_following)
                return;
        m->is_looking = false;
        diff(m, is_look);
        if (m->must_list)
                list(m);
        check_known(m);
}

static void list(struct member *m)
{
        m->must_list = true;
        if (m->is_listing || !m->is_following || !m->session)
                return;
        m->is_listing = true;
        m->must_list = false;
        m->children = (struct coord_children){ .request.done = on_listed, .path = m->group, .watch = true };
        coord_children(m->coord, &m->children);
}

void member_follow(struct member *m, bool is_following)
{
        struct member_mate *mate;
        struct member_mate *next;
        if (m->is_following == is_following)
                return;
        m->is_following = is_following;
        m->is_known = false;
        if (is_following) {
                member_look(m);
                return;
        }
        HASH_ITER (hh, m->mates, mate, next) {
                mate->is_told = false;
                drop_mate(mate);
        }
}

/* --- events of the tree --- */

void member_session(struct member *m, enum coord_state state, uint64_t session)
{
        if (state == COORD_EXPIRED) {
                m->session = 0;
                m->is_there = false;
                if (m->is_following)
                        tell_known(m, false);
        } else if (state == COORD_ALIVE && session != m->session) {
                m->session = session;
                m->is_there = false;
                tend(m);
        }
}

void member_changed(struct member *m, const char *path)
{
        if (!strcmp(path, m->path)) {
                m->is_watched = false;
                tend(m);
        }
        if (!m->is_following)
                return;
        if (!strcmp(path, m->group)) {
                list(m);
                return;
        }
        struct member_mate *mate = find_mate(m, path);
        if (mate)
                ask_mate(mate);
}

void member_look(struct member *m)
{
        m->is_there = false;
        tend(m);
        if (!m->is_following)
                return;
        tell_known(m, false);
        m->is_looking = true;
        list(m);
}

void member_retry(struct member *m)
{
        tend(m);
        if (!m->is_following || !m->session)
                return;
        if (m->must_list)
                list(m);
        for (struct member_mate *mate = m->mates; mate; mate = mate->hh.next)
                if (mate->is_stale)
                        ask_mate(mate);
}

void member_init(struct member *m, struct coord *coord, const char *group, const char *name,
        const struct member_events *events, void *self)
{
        *m = (struct member){ .coord = coord, .events = events, .self = self };
        (void)snprintf(m->group, sizeof(m->group), "%s", group);
        if (name)
                (void)snprintf(m->path, sizeof(m->path), "%s/%s", group, name);
}

void member_free(struct member *m)
{
        struct member_mate *mate = m->mates;
        HASH_CLEAR(hh, m->mates); /* the elements stay, and stay linked */
        while (mate) {
                struct member_mate *next = mate->hh.next;
                free(mate);
                mate = next;
        }
        buffer_free(&m->data);
        buffer_free(&m->sending);
}
