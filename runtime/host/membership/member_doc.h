/* member_doc.h: the document in a member's node.
 *
 *         quiver-member 1
 *         name host-a
 *         nonce 3f2a94c07b1de85f6a0c2d4e8b917f35
 *         weight 1
 *         state active
 *         sees_store yes
 *         handler mail 1.4.2
 *         feature limits
 *         stale 7 1763256000
 *         load 2913
 *         busy 7 1480
 *
 * `handler`, `feature`, `stale` and `busy` lines may be missing or repeated, `load` may be missing; the others stand
 * once, in any order.  `load` is that of all its shards, and a `busy` line a shard with its part of it (load.h).  A
 * line whose first word is unknown is skipped: a newer host wrote it in the same format. */
#ifndef QUIVER_HOST_MEMBERSHIP_MEMBER_DOC_H
#define QUIVER_HOST_MEMBERSHIP_MEMBER_DOC_H

#include "host/membership/assign.h"
#include "store/app.h"

#define MEMBER_DOC_VERSION  1u
#define MEMBER_DOC_MAX      (64u * 1024u)
#define MEMBER_VERSION_MAX  32u
#define MEMBER_HANDLERS_MAX 256u
#define MEMBER_STALE_MAX    256u /* further ones are reported when these have new epochs */

struct member_handler {
        char name[TASK_HANDLER_MAX + 1];
        char version[MEMBER_VERSION_MAX + 1]; /* "" if it has none */
};

/* Large: keep it on the heap or static.  `member.created` is a property of the node and not in the document. */
struct member_doc {
        struct assign_member member;
        struct member_handler handlers[MEMBER_HANDLERS_MAX];
        uint32_t handlers_count;
        char features[STORE_FEATURES_MAX][STORE_FEATURE_NAME_MAX + 1]; /* that the host knows (store/app.h) */
        uint32_t features_count;
        struct assign_stale stale[MEMBER_STALE_MAX];
        uint32_t stale_count;
};

/* Adds a handler, unless it is listed already or there is no room.  A version is cut to fit, and unprintable characters
 * in it become `_`. */
void member_doc_add_handler(struct member_doc *doc, const char *name, const char *version);
/* Adds all features that this build knows. */
void member_doc_add_features(struct member_doc *doc);
bool member_doc_knows(const struct member_doc *doc, const char *feature);
void member_doc_add_stale(struct member_doc *doc, uint32_t shard, uint64_t epoch);

void member_doc_put(struct buffer *to, const struct member_doc *doc);

/* 0; -EPROTO: a newer Quiver wrote it; -EBADMSG: it is not a member's. */
int member_doc_parse(struct span text, struct member_doc *ret_doc, struct error *error);

#endif
