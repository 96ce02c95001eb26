/* names.h: which keys of etcd a tree uses.  For ROOT "/quiver" and app "demo":
 *
 *         /quiver/demo/node/2/members/a.3f2a   a node; the number counts the names of its path, so that the children of
 *                                              a node are one range of keys, and nothing else is in it
 *         /quiver/demo/sequence/election       the next number for a sequential child of that node, in decimal digits
 *         /quiver/demo/session/000000000000002a  a session, by its lease in hexadecimal digits; the value is its nonce
 *
 * Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_NAMES_H
#define QUIVER_COORD_ETCD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

/* The names that a path may have: a transaction compares them all. */
#define ETCD_DEPTH_MAX 32u

unsigned etcd_depth(const char *path);
/* Each appends the key to the buffer; `prefix` is "/quiver/demo/". */
void etcd_name_node(struct buffer *to, const char *prefix, const char *path);
/* What all its children begin with; "" is the top of the tree. */
void etcd_name_children(struct buffer *to, const char *prefix, const char *path);
void etcd_name_sequence(struct buffer *to, const char *prefix, const char *path);
void etcd_name_session(struct buffer *to, const char *prefix, uint64_t lease);
/* Turns what keys begin with into the key after all of them. */
void etcd_name_end(struct buffer *key);

/* The path of the node that the key is of.  False: it is of none. */
bool etcd_name_read(struct span key, const char *prefix, char *ret_path);

/* Appends ,"NAME":"BASE64"; the first of an object has no comma. */
void etcd_put_bytes(struct buffer *json, const char *name, const void *data, size_t size);
void etcd_put_key(struct buffer *json, const char *name, const struct buffer *key);

#endif
