/* Records as bytes for another process of the same program, and back: one function a record, for both directions.
 *
 *     static const point_t *wire_point(kit_wire_t *w, const point_t *at) {
 *       point_t copy, *p = kit_wire_record(w, at, &copy, sizeof copy);
 *       p->name = kit_wire_block(w, p->name, p->n_name, 1);
 *       return p;
 *     }
 *
 * Written, a record is what it was with its pointers, and what they point to follows it. Read, records are where the
 * bytes do, their pointers reset: nothing is copied, and the bytes live as long as the records. Bytes that do not
 * hold what they announce make the wire fail, and then all that is read is empty. */
#ifndef KIT_WIRE_H
#define KIT_WIRE_H

#include "text.h"
#include <stdint.h>

typedef struct kit_wire {
  kit_text_t *out; /* written to its end; NULL: read */
  char *at;        /* read: the next byte */
  size_t left;
  int failed; /* read: see above; written: no memory */
} kit_wire_t;

kit_wire_t kit_wire_writer(kit_text_t *out);            /* out is empty */
kit_wire_t kit_wire_reader(void *bytes, size_t nbytes); /* aligned to 8 */
/* The record to continue with: `copy` of it when written, the one in the bytes when read. */
void *kit_wire_record(kit_wire_t *w, const void *at, void *copy, size_t size);
/* n elements of a size; never NULL. */
void *kit_wire_block(kit_wire_t *w, const void *at, uint64_t n, size_t size);
void kit_wire_text(kit_wire_t *w, aot_str_t *text);
int kit_wire_done(const kit_wire_t *w); /* 1: all well, and all that there was has been read */

#endif
