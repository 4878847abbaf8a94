/* name_table.h - from a name to a 32-bit number. O(1) expected. */
#ifndef P2_NAME_TABLE_H
#define P2_NAME_TABLE_H

#include "kit/base/map.h"
#include "pt2_env.h"

#define P2_NO_ENTRY UINT32_MAX

typedef struct p2_name {
  aot_str_t name; /* borrowed */
  uint32_t value;
} p2_name_t;

typedef struct p2_names { /* zero-initialise; its memory is scratch */
  p2_name_t *rows;
  uint32_t capacity;
  kit_map_t map; /* rows by name */
} p2_names_t;

/* AOT_E_EXISTS when the name is there: *out_old is its number then (out_old may be NULL). */
aot_status_t p2_names_add(p2_env_t *e, p2_names_t *t, aot_str_t name, uint32_t value, uint32_t *out_old);
uint32_t p2_names_find(const p2_names_t *t, aot_str_t name); /* P2_NO_ENTRY: not there */

#endif
