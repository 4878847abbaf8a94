/* name_table.h - from a name to a 32-bit number: open addressing, linear probing, FNV-1a. O(1) expected. */
#ifndef P2_NAME_TABLE_H
#define P2_NAME_TABLE_H

#include "pt2_env.h"

#define P2_NO_ENTRY UINT32_MAX

typedef struct p2_name_slot {
  aot_str_t name; /* borrowed */
  uint32_t value;
  uint32_t used;
} p2_name_slot_t;

typedef struct p2_names { /* zero-initialise */
  p2_name_slot_t *slots;
  uint32_t capacity; /* a power of two, or 0 */
  uint32_t n;
} p2_names_t;

/* AOT_E_EXISTS when the name is there: *out_old is its number then (out_old may be NULL). */
aot_status_t p2_names_add(p2_env_t *e, p2_names_t *t, aot_str_t name, uint32_t value, uint32_t *out_old);
uint32_t p2_names_find(const p2_names_t *t, aot_str_t name); /* P2_NO_ENTRY: not there */

#endif
