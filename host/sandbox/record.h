/* What a unit leaves after besides its edits: reported numbers, reads of the environment. aot_ctx_t.report points here
 * while a unit is called. */
#ifndef AOTH_RECORD_H
#define AOTH_RECORD_H

#include "kit/base/arena.h"
#include <config/pipeline.h>

typedef struct aoth_env_read {
  const char *name, *value; /* value NULL: not set */
} aoth_env_read_t;

typedef struct aoth_report {
  kit_arena_t *arena;
  aoth_number_t *numbers;
  uint32_t n_numbers, number_capacity;
  aoth_env_read_t *env;
  uint32_t n_env, env_capacity;
} aoth_report_t;

aot_status_t aoth_report_number(aoth_report_t *r, aot_str_t name, double value,
                                aot_str_t unit); /* the last of a name counts */
aot_status_t aoth_report_text(aoth_report_t *r, aot_str_t name, aot_str_t text);
const char *aoth_report_env(aoth_report_t *r, const char *name);

#endif
