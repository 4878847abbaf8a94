/* json_place.h - JSON text of a member: parsing it, and finding the place of a value again for a message.
 *
 * jansson keeps no positions, so the decoder carries a path and the place is found by walking the text again when
 * something is wrong. Linear in the text, on errors only. */
#ifndef P2_JSON_PLACE_H
#define P2_JSON_PLACE_H

#include "zip_directory.h"
#include <jansson.h>

/* One step from a parent value to a member (key) or an element (key NULL, index). The root has up NULL. */
typedef struct p2_at {
  const struct p2_at *up;
  const char *key;
  uint32_t index;
} p2_at_t;

typedef struct p2_doc {
  const char *label; /* the member's name, for messages */
  const char *text;
  uint64_t size;
  uint64_t file_at; /* of text in the user's file, 0: it was deflated */
  json_t *root;     /* owned: p2_json_close */
} p2_doc_t;

/* Read a member as JSON. Older writers put bare Infinity and NaN into it: they are read as strings. */
aot_status_t p2_json_open(p2_env_t *e, p2_member_t *m, p2_doc_t *out);
void p2_json_close(p2_doc_t *d); /* NULL root is fine */

/* Byte offset of the value at the path in a well-formed text; size when it is not there. */
uint64_t p2_json_offset(const char *text, uint64_t size, const p2_at_t *at);
/* "graph_module.graph.nodes[3].target" into out, cut to fit. */
void p2_json_path(const p2_at_t *at, char *out, size_t size);
/* A failure at a place: "member, line 1 column 70 (path): text". */
aot_status_t p2_bad(p2_env_t *e, const p2_doc_t *d, const p2_at_t *at, const char *code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
