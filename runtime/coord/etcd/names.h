/* names.h: the keys that a tree uses in etcd.  For ROOT "/quiver" and app "demo":
 *
 *         /quiver/demo/node/2/members/a.3f2a     a node; the number is the depth of its path, so that the children of a
 *                                                node are one range of keys with nothing else in it
 *         /quiver/demo/sequence/election         the next number of a sequential child of that node, in decimal digits
 *         /quiver/demo/session/000000000000002a  a session, by its lease in hexadecimal digits; the value is its nonce
 *
 * Plain data, no I/O. */
#ifndef QUIVER_COORD_ETCD_NAMES_H
#define QUIVER_COORD_ETCD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

/* The longest path, in names: a transaction compares all of them. */
#define ETCD_DEPTH_MAX 32u

unsigned etcd_depth(const char *path);
/* Each appends the key to the buffer; `prefix` is "/quiver/demo/". */
void etcd_name_node(struct buffer *to, const char *prefix, const char *path);
/* The prefix of the keys of all its children; "" is the top of the tree. */
void etcd_name_children(struct buffer *to, const char *prefix, const char *path);
void etcd_name_sequence(struct buffer *to, const char *prefix, const char *path);
void etcd_name_session(struct buffer *to, const char *prefix, uint64_t lease);
/* Turns a prefix into the first key after all keys with that prefix. */
void etcd_name_end(struct buffer *key);

/* The path of the node with that key.  False: it is not a node's key. */
bool etcd_name_read(struct span key, const char *prefix, char *ret_path);

/* Appends ,"NAME":"BASE64"; the first of an object has no comma. */
void etcd_put_bytes(struct buffer *json, const char *name, const void *data, size_t size);
void etcd_put_key(struct buffer *json, const char *name, const struct buffer *key);

#endif
