/* The options of backend-cuda: what a pipeline may say, and what of it a program is made with. */
#ifndef GC_GPU_OPTIONS_H
#define GC_GPU_OPTIONS_H

#include <aot/plugin.h>

enum { GC_N_OPTIONS = 5 };
extern const aot_option_t gc_options[GC_N_OPTIONS];

typedef struct gc_choices {
  int algorithms;        /* GC_ALGORITHMS_*, of products */
  uint64_t chunk_nbytes; /* lw_machine_t */
  int adds_residuals;    /* the same */
  int draws_attention;   /* attention may draw what its dropout keeps (flash_attention.h) */
  int attention_order;   /* of cuDNN's sums: GC_ATT_ORDERED .. (attention_graphs.h) */
} gc_choices_t;

/* opts: of gc_options. */
gc_choices_t gc_choices_of(const aot_opts_t *opts);

#endif
