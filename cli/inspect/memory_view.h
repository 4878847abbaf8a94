/* A memory plan (aot.memory/1) as people see it: every buffer with the name, type, operator and module of its value,
 * bytes alive by step, the largest holders at the peak. What memory_text.c, memory_json.c and memory_plot.c write.
 *
 *     bytes  held: arena and all that is not returned (plan.peak_nbytes)
 *       |      alive: the sum of the buffers at a step; most at plan.peak_step
 *       |   ..__/^\.
 *       +------------> steps
 */
#ifndef AOTH_MEMORY_VIEW_H
#define AOTH_MEMORY_VIEW_H

#include <aot/ext/memory.h>
#include "kit/base/arena.h"
#include <ir/program.h>

#define AOTH_MEMORY_KINDS 7u /* AOT_MEMORY_* are 1 .. 6 */

typedef struct aoth_holder {
  int32_t kind; /* AOT_MEMORY_* */
  uint32_t first, last;
  uint64_t nbytes, place;
  const char *name;   /* of the value, "%12" where it has none; "scratch" */
  const char *type;   /* "f32[8, 64]"; "" */
  const char *op;     /* that makes it; "" for inputs and scratch */
  const char *module; /* path in the user's model; "" */
} aoth_holder_t;

typedef struct aoth_memory_view {
  const char *title; /* the unit that reports it */
  aot_memory_plan_t plan;
  const aoth_holder_t *holders; /* plan.n_buffers, in the plan's order */
  const uint32_t *largest;      /* n_largest holders alive at plan.peak_step, largest first */
  uint32_t n_largest;
  const uint64_t *alive;    /* by step, bytes */
  uint64_t peak_alive;      /* alive[plan.peak_step] */
  const char *peak_at;      /* operator and module of that step, "OP in h.0.attn"; "" */
  int is_step_graph;        /* one graph of forward, backward and update, whose steps are between each other */
  uint64_t n_updates;       /* steps of the update among those after the forward */
  const uint8_t *is_update; /* by step */
} aoth_memory_view_t;

/* Everything is in the arena; the program is not needed afterwards. plan: rows checked (memory_plan.h), borrowed as
 * long as the view. title: copied. AOT_E_EXHAUSTED. O(n log n). */
aot_status_t aoth_memory_view_make(aot_prog_t *p, const aot_memory_plan_t *plan, const char *title, kit_arena_t *arena,
                                   aoth_memory_view_t *out);

const char *aoth_memory_kind(int32_t kind); /* "saved" */
/* The order in which kinds are stacked, long-lived ones below: 6 kinds. */
extern const int32_t aoth_memory_order[AOTH_MEMORY_KINDS - 1];
/* bytes alive at a step. O(buffers) */
void aoth_memory_by_kind(const aoth_memory_view_t *v, uint64_t step, uint64_t out[AOTH_MEMORY_KINDS]);

/* Of n_steps steps drawn in n_columns columns: the step that represents a column, the one with the most bytes alive, so
 * that no maximum is lost. n_columns at most n_steps. */
uint64_t aoth_memory_column(const aoth_memory_view_t *v, uint32_t column, uint32_t n_columns);

/* among the steps of a column */
int aoth_memory_has_update(const aoth_memory_view_t *v, uint32_t column, uint32_t n_columns);
const char *aoth_memory_part(const aoth_memory_view_t *v, uint64_t step); /* "forward", "backward", "update" */

/* Bytes at the peak by module: paths are cut to so many parts that at most `most` groups come out; largest first. */
typedef struct aoth_module_share {
  const char *module; /* "h.0"; "" for buffers without a module */
  uint64_t nbytes;
} aoth_module_share_t;
aot_status_t aoth_memory_by_module(const aoth_memory_view_t *v, uint32_t most, kit_arena_t *arena,
                                   aoth_module_share_t **out, uint32_t *out_n);

/* "12.4 MiB", "512 B" */
#define AOTH_BYTES_SIZE 24
const char *aoth_bytes_text(uint64_t nbytes, char out[AOTH_BYTES_SIZE]);

/* ---- the writers ---- */

typedef struct aoth_memory_report {
  const char *file; /* that was queried about */
  const aoth_memory_view_t *views;
  uint32_t n_views;
  uint64_t budget; /* bytes; 0: none */
  uint32_t top;    /* how many holders are listed */
} aoth_memory_report_t;

/* memory_text.c */
aot_status_t aoth_memory_print(const aoth_memory_report_t *r, kit_arena_t *arena, kit_text_t *out);
struct json_t;
/* memory_json.c; NULL: no memory */
struct json_t *aoth_memory_json(const aoth_memory_report_t *r, kit_arena_t *arena);

#endif
