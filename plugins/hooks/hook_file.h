/* Hooks as programs in text form. A file holds pairs of graphs of kind region, `@pack` and `@unpack`, or `@pack.NAME`
 * and `@unpack.NAME`:
 *
 *     symbol n in [0, inf] hint 4
 *     symbol m in [0, inf] hint 4
 *     graph @pack region {
 *       in %x = region 0 : f32[n, m]
 *       %half = aten._to_copy.default %x, dtype=bf16
 *       out region 0 = %half
 *     }
 *     graph @unpack region {
 *       in %half = region 0 : bf16[n, m]
 *       %x = aten._to_copy.default %half, dtype=f32
 *       out region 0 = %x
 *     }
 *
 * A pair is a template: it fits values of the dtype and rank of @pack's input whose sizes are its numbers; symbols take
 * the value's sizes. `f32[any]`, with a symbol of that name, fits every rank. The first pair of the file that fits is
 * used; types are inferred again from the value. What @pack gives out, in order, is what @unpack takes in. */
#ifndef HOOK_FILE_H
#define HOOK_FILE_H

#include "hook.h"

#define HK_MAX_PAIRS 32

typedef struct hk_pair {
  aot_graph_t pack, unpack;
  aot_str_t name; /* empty, or ".NAME" */
} hk_pair_t;

typedef struct hk_file {
  aot_str_t path;
  aot_prog_t *prog; /* the file's */
  hk_pair_t pairs[HK_MAX_PAIRS];
  uint32_t n_pairs, n_symbols, n_exprs;
  int64_t *bound; /* by symbol of the file: what it represents, a dimension of the program */
  int64_t *dims;  /* by expression of the file: the same */
  uint32_t *map;  /* by value of the file: its value in the program */
} hk_file_t;

/* Reads and checks the file; what is wrong is reported and stored in e->status. close() after either. */
void hk_file_open(hk_file_t *f, em_t *e, aot_str_t path);
void hk_file_close(hk_file_t *f, em_t *e);
hk_hook_t hk_file_hook(const hk_file_t *f);

#endif
