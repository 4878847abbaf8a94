#include "flash_kernels.h"

#include "kernel_constants.h"
#include "kit/loops/loop_print.h"
#include <aot/base.h>
#include <string.h>

enum { WARP = 32, SIXTEEN = 16, GROUP = 64 /* keys of two words of bits */ };

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int is_odd(int64_t step) { return step % 8 != 0; } /* halves: 16 bytes */

int gc_own_takes(const gc_attention_t *a) {
  const int64_t longest = a->n_query > a->n_key ? a->n_query : a->n_key;
  if (a->dtype != AOT_BF16 && a->dtype != AOT_F16) return 0;
  if ((a->width != 64 && a->width != 128) || a->width_v != a->width || a->bias_dtype || !(a->scale > 0)) return 0;
  if (longest < 1 || longest > 1 << 24 || a->n_batch * a->n_head * (longest / GROUP + 1) > INT32_MAX) return 0;
  if (a->n_batch * a->n_head * a->n_query >= (INT64_C(1) << 34) / a->n_key)
    return 0; /* blocks are numbered in 32 bits */
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++)
    if (what != GC_ATT_KEEP && what != GC_ATT_STATS && what != GC_ATT_SUMS &&
        (is_odd(a->strides[what].batch) || is_odd(a->strides[what].head) || is_odd(a->strides[what].position)))
      return 0;
  return 1;
}

/* The fastest of those that own_attention_bench had an H200 run. */
void gc_own_choose(gc_own_attention_t *o) {
  const int is_wide = o->call.width > 64;
  o->cut[GC_OWN_OUTPUT] = (gc_own_cut_t){1, 4, is_wide ? 2 : 3, 64, 1, 0};
  o->cut[GC_OWN_QUERIES] = (gc_own_cut_t){1, 4, is_wide ? 2 : 3, 64, 1, 0};
  o->cut[GC_OWN_KEYS] = (gc_own_cut_t){is_wide ? 1 : 2, 4, 2, 64, 0, 1};
}

static int64_t own_rows(const gc_own_attention_t *o) {
  const gc_own_cut_t *c = &o->cut[o->kind];
  return (int64_t)SIXTEEN * c->sixteens * c->warps;
}
static int64_t n_words(const gc_attention_t *a) { return 2 * divide_up(a->n_key, GROUP); }
static int64_t n_rows(const gc_attention_t *a) { return a->n_batch * a->n_head * a->n_query; }

uint64_t gc_own_bits_nbytes(const gc_attention_t *a) { return (uint64_t)(n_rows(a) * n_words(a)) * sizeof(uint32_t); }
uint64_t gc_own_rows_nbytes(const gc_attention_t *a) { return 2 * (uint64_t)n_rows(a) * sizeof(float); }

int gc_own_n_pointers(const gc_own_attention_t *o) {
  return o->kind == GC_OWN_KEYS ? GC_OWN_N_POINTERS - 1 : GC_OWN_N_POINTERS;
}

/* What is in shared memory of a block, in its order. KEYS: numbers of a tile's rows: their bits, R and L. */
typedef struct layout {
  /* bytes: of each of the block's matrices; of each that passes by; in addition to these */
  int64_t own, passing, numbers;
  int64_t n_own;
} layout_t;

static layout_t layout_of(const gc_own_attention_t *o) {
  const gc_own_cut_t *c = &o->cut[o->kind];
  layout_t l = {.own = own_rows(o) * o->call.width * 2, .passing = (int64_t)c->tile * o->call.width * 2};
  l.n_own = o->kind == GC_OWN_OUTPUT ? 1 : 2;
  if (o->kind == GC_OWN_KEYS) l.numbers = c->tile * (divide_up(own_rows(o), GROUP) * 2 + 2) * 4;
  return l;
}

void gc_own_launch(const gc_own_attention_t *o, uint32_t *out_blocks, uint32_t *out_threads, uint32_t *out_shared) {
  const gc_attention_t *a = &o->call;
  const layout_t l = layout_of(o);
  const int64_t heads = a->n_batch * (o->kind == GC_OWN_KEYS ? a->n_head / a->share : a->n_head);
  *out_blocks = (uint32_t)(heads * divide_up(o->kind == GC_OWN_KEYS ? a->n_key : a->n_query, own_rows(o)));
  *out_threads = (uint32_t)(WARP * o->cut[o->kind].warps);
  *out_shared = (uint32_t)(l.n_own * l.own + 2 * (2 * l.passing + l.numbers));
}

/* ---- text ---- */

static const char tensor_cores[] = {
#include "embedded/tensor_cores.cuh.inc"
};
static const char forward[] = {
#include "embedded/flash_forward.cu.inc"
};
static const char backward_queries[] = {
#include "embedded/flash_backward_queries.cu.inc"
};
static const char backward_keys[] = {
#include "embedded/flash_backward_keys.cu.inc"
};

static void print_strides(lp_text_t *out, const gc_attention_t *a, int what, const char *name) {
  lp_print(out, "  const int64_t %s_batch = %lldLL, %s_head = %lldLL, %s_row = %lldLL;\n", name,
           (long long)a->strides[what].batch * 2, name, (long long)a->strides[what].head * 2, name,
           (long long)a->strides[what].position * 2);
}

/* The constants of kernels/flash_*.cu: sizes; strides in bytes; factors. */
static void print_constants(lp_text_t *out, const gc_own_attention_t *o) {
  static const char *const names[GC_ATT_N_IN_MEMORY] = {
      [GC_ATT_Q] = "q",   [GC_ATT_K] = "k",   [GC_ATT_V] = "v",   [GC_ATT_O] = "o",
      [GC_ATT_GO] = "go", [GC_ATT_GQ] = "gq", [GC_ATT_GK] = "gk", [GC_ATT_GV] = "gv"};
  const gc_attention_t *a = &o->call;
  const gc_own_cut_t *c = &o->cut[o->kind];
  const layout_t l = layout_of(o);
  const gc_constant_t constants[] = {
      {"WARPS", c->warps},
      {"THREADS", WARP * c->warps},
      {"SIXTEENS", c->sixteens},
      {"OWN", own_rows(o)},
      {"TILE", c->tile},
      {"IS_HELD", c->is_held},
      {"WIDTH", a->width},
      {"ROW", a->width * 2},
      {"STEPS", a->width / 16},
      {"COLUMNS", a->width / 8},
      {"HEADS", a->n_head},
      {"SHARE", a->share},
      {"QUERIES", a->n_query},
      {"KEYS", a->n_key},
      {"IS_CAUSAL", a->is_causal},
      {"IS_DROPPED", a->keep_dtype != 0},
      {"WORDS", n_words(a)},
      {"GROUPS", divide_up(own_rows(o), GROUP)},
      {"OWN_NBYTES", l.own},
      {"PASSING", l.n_own * l.own},
      {"STAGE", 2 * l.passing + l.numbers},
      {"TILE_NBYTES", l.passing},
  };
  gc_print_constants(out, constants, sizeof constants / sizeof *constants);
  lp_print(out, "  const int64_t ALL_ROWS = %lldLL;\n", (long long)n_rows(a));
  for (int what = 0; what < GC_ATT_N_IN_MEMORY; what++)
    if (names[what]) print_strides(out, a, what, names[what]);
  lp_print(out, "  const float scale = %.9ef, scale2 = %.9ef, keep_scale = %.9ef;\n", a->scale,
           a->scale * 1.4426950408889634, a->keep_dtype ? a->keep_scale : 1.0);
  lp_print(out, "  const uint32_t last_kept = %uu;\n", (o->n_kept << 8) - 1);
}

void gc_print_own_attention(const void *self, const char *name, lp_text_t *out) {
  static const char *const texts[] = {
      [GC_OWN_OUTPUT] = forward, [GC_OWN_QUERIES] = backward_queries, [GC_OWN_KEYS] = backward_keys};
  const gc_own_attention_t *o = self;
  const gc_own_cut_t *c = &o->cut[o->kind];
  const char *half = lp_half_name(o->call.dtype), *text = texts[o->kind];
  lp_text_add(out, tensor_cores, strlen(tensor_cores));
  lp_print(out,
           "#undef LP_PRODUCT_OF\n#undef LP_TWO_OF\n#undef LP_FROM\n#undef LP_UNROLL_TILE\n"
           "#define LP_PRODUCT_OF lp_product_%s\n#define LP_TWO_OF lp_two_%s\n#define LP_FROM lp_from_%s\n",
           half, half, half);
  lp_print(out, "#define LP_UNROLL_TILE _Pragma(\"unroll %d\")\n", c->unrolled ? c->unrolled : c->tile / SIXTEEN);
  lp_print(out, "LP_RESIDENT(%s, %d, %d, %d) {\n", name, gc_own_n_pointers(o), WARP * c->warps, c->resident);
  print_constants(out, o);
  lp_text_add(out, text, strlen(text));
}
