/* The generated functions of a program, by name. A schedule is made once: it keeps the place of a function's address,
 * which is filled when the function has been compiled.
 *
 *     lowering:  find(name) -> a place, or add(name, text) -> a new one
 *     then:      compile: what was added becomes code, and all places have addresses; or none has that was added
 *
 * What is added makes units of about 20 kB, which a compiler has done in a quarter of a second: small enough to divide,
 * large enough that reading the prelude does not matter. */
#ifndef BC_FUNCTIONS_H
#define BC_FUNCTIONS_H

#include "codecache.h"
#include "kit/base/map.h"
#include "kit/loops/loop.h"
#include "kit/lowering/schedule.h"

typedef struct bc_function {
  char name[32];
  lw_loop_fn address; /* NULL: not compiled yet */
} bc_function_t;

typedef struct bc_functions { /* zero-initialise */
  bc_function_t **at;         /* in the order in which they were added; owned, at fixed addresses */
  kit_map_t by_name;          /* rows of `at` */
  uint32_t n, capacity;
  uint32_t n_missing; /* without an address */
  lp_text_t *units;   /* their sources */
  uint32_t n_units, unit_capacity;
  void **modules;
  uint32_t n_modules, module_capacity;
  int cannot_compile; /* nothing is added any more */
} bc_functions_t;

void bc_functions_deinit(bc_functions_t *f);
const lw_loop_fn *bc_functions_find(const bc_functions_t *f, const char *name); /* NULL: it is not known */
/* *out: its place; NULL when nothing can be compiled. AOT_E_EXHAUSTED. */
aot_status_t bc_functions_add(bc_functions_t *f, const char *name, const char *text, uint64_t nbytes,
                              const lw_loop_fn **out);
/* A compiler that cannot be used is no failure: cannot_compile is set, what was added is forgotten, and schedules with
 * its places must be made again; *out_warning reports it. */
aot_status_t bc_functions_compile(bc_functions_t *f, bc_cache_t *cache, bc_workers_t *workers, bc_code_stats_t *stats,
                                  lw_error_t *out_warning, lw_error_t *error);

#endif
