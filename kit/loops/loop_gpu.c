/* The schedule of a loop on a GPU: who takes which elements. A rule finds it from sizes, strides and alignments alone,
 * so equal layers share one text.
 *
 *     points     a thread takes a vector of neighbours, once: as many threads as there are vectors
 *     rows       a warp, or a part of one, takes a short row, a block a long one; a thread holds its part in registers
 *                where that fits, else the row in shared memory
 *     columns    a block takes a tile of columns and every so many rows of it
 *     places     stores by index tensors: a team takes some columns of a segment of rows that are sorted by their
 *     places
 *
 * Where rows or tiles are too few to fill the device, a reduction is made in parts, one a block, and a second kernel
 * joins these in their order. So sums do not depend on who comes first: a thread adds its own elements in order, then
 * threads, warps and parts are joined by halves. Floats are added in float; the order above makes up for what the CPU's
 * sums in double have. */
#include "gpu_schedule.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <string.h>

enum {
  MOST_SHARED = 48 << 10,  /* bytes of shared memory that every block may have */
  WALKED = 32,             /* rows that are not worth being sorted by their places */
  ON_THEIR_WAY = 48 << 10, /* bytes of rows that a processor waits for at a time, where columns are summed, */
  FEWEST_BLOCKS = 2,       /* and its blocks */
  MOST_BLOCKS = 6
};

const lp_gpu_machine_t lp_gpu_h100 = {90, 132, 227 << 10, 228 << 10};

/* ---- sums in float ---- */

/* A double of each element is meant; one of a row that comes of floats is how the CPU adds. */
static int is_wide_for_sums(const lp_loop_t *l, const uint8_t *is_meant, uint32_t k) {
  const lp_inst_t *inst = &l->insts[k];
  if (!inst->of_row) return 0;
  for (uint32_t a = 0; a < inst->n_args; a++) {
    const lp_arg_t *arg = &inst->args[a];
    AOT_ASSERT(arg->kind != LP_INST || arg->index < k); /* whose is_meant is known */
    if (arg->kind == LP_INST && l->insts[arg->index].dtype == AOT_F64 && is_meant[arg->index]) return 0;
    if (arg->kind != LP_LOAD && arg->kind != LP_DRAWN) continue;
    const int32_t dtype = l->accesses[arg->index].dtype;
    if (dtype == AOT_F64 || !lp_is_float(dtype)) return 0;
  }
  return 1;
}

static void sum_in_float(lp_loop_t *l) {
  AOT_ASSERT(l->n_insts <= LP_INSTS);
  uint8_t is_meant[LP_INSTS] = {0};
  for (uint32_t s = l->n_loads; s < gs_n_accesses(l); s++)
    is_meant[l->accesses[s].inst] |= l->accesses[s].dtype == AOT_F64;
  for (uint32_t k = 0; k < l->n_insts; k++) is_meant[k] |= !is_wide_for_sums(l, is_meant, k);
  /* what a meant double reads is meant, but for reductions of floats, of which there is one value a row */
  for (uint32_t k = l->n_insts; k-- > 0;)
    for (uint32_t a = 0; is_meant[k] && l->insts[k].compute == AOT_F64 && a < l->insts[k].n_args; a++)
      if (l->insts[k].args[a].kind == LP_INST && !lp_reduces_row(&l->insts[l->insts[k].args[a].index]))
        is_meant[l->insts[k].args[a].index] = 1;
  for (uint32_t k = 0; k < l->n_insts; k++) {
    lp_inst_t *inst = &l->insts[k];
    if (!is_meant[k] && inst->compute == AOT_F64) inst->compute = AOT_F32;
    if (!is_meant[k] && inst->dtype == AOT_F64) inst->dtype = AOT_F32;
  }
}

/* ---- what every kind has ---- */

/* Do indices need 64 bits? With room for a grid's surplus of threads. */
static int is_wide(const lp_loop_t *l) {
  const double most = 2147483647.0 - 1024 * 1024;
  double n = 1;
  for (int32_t d = 0; d < l->rank; d++) n *= (double)l->sizes[d];
  for (uint32_t k = 0; k < gs_n_accesses(l); k++) {
    double reach = 0;
    for (uint32_t i = 0; i < l->accesses[k].n_indices; i++)
      reach += (double)l->accesses[k].indices[i].stride * (double)l->accesses[k].indices[i].size;
    for (int32_t d = 0; d < l->rank; d++) {
      const double stride = (double)l->accesses[k].strides[d];
      reach += (double)l->sizes[d] * (stride < 0 ? -stride : stride);
    }
    if (reach > most) return 1;
  }
  return n > most;
}

static int reads_halves_alone(const lp_loop_t *l) {
  int n = 0;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const lp_access_t *a = &l->accesses[k];
    if (!lp_moves(l, k) || !lp_is_float(a->dtype)) continue;
    if (a->draws || aot_dtype_size(a->dtype) > 2) return 0;
    n++;
  }
  return n > 0;
}

/* ---- kinds ---- */

static int is_flat(const lp_loop_t *l) {
  for (uint32_t k = 0; k < gs_n_accesses(l); k++)
    if (l->accesses[k].n_indices || l->accesses[k].bounded) return 0;
  return l->rank == 1 && gs_n_accesses(l) + LP_GPU_NUMBERS <= LP_GPU_MOST_POINTERS;
}

static void choose_points(lp_loop_t *l) {
  l->gpu.threads = l->gpu.team = 256;
  l->gpu.vector = gs_vector(l, l->rank - 1, gs_draws_words(l));
  l->gpu.tensors = (uint32_t)is_flat(l);
}

/* Bytes of shared memory that a block's sums of columns take. */
static uint64_t shared_by_columns(const lp_loop_t *l) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (lp_reduces_row(&l->insts[k])) bytes += aot_dtype_size(lp_gpu_lane(&l->insts[k]));
  return bytes * l->gpu.threads * l->gpu.vector;
}

/* As many threads side by side as there are vectors of columns, up to a warp. */
static void choose_width(lp_loop_t *l) {
  const uint64_t across = (uint64_t)l->sizes[lp_row(l) - 1];
  l->gpu.team = WARP;
  while (l->gpu.team > 1 && l->gpu.team / 2 * l->gpu.vector >= across) l->gpu.team /= 2;
  AOT_ASSERT(l->gpu.team && WARP % l->gpu.team == 0 && l->gpu.threads % l->gpu.team == 0);
}

/* Bytes of a row that a thread reads: of each load its vector of columns, or one number for all. */
static uint64_t bytes_at_once(const lp_loop_t *l) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < l->n_loads; k++)
    bytes += aot_dtype_size(l->accesses[k].dtype) * (l->accesses[k].strides[lp_row(l) - 1] ? l->gpu.vector : 1);
  return bytes;
}

/* Of a processor: as many as keep its memory busy. More take longer, as each leaves a part (bench/cuda/README.md). */
static uint64_t blocks_at_once(const lp_loop_t *l, uint64_t bytes_of_row) {
  const uint64_t fit = gs_divide_up(ON_THEIR_WAY, gs_at_least_one(bytes_of_row * l->gpu.chunks * l->gpu.threads));
  return fit > MOST_BLOCKS ? MOST_BLOCKS : fit < FEWEST_BLOCKS ? FEWEST_BLOCKS : fit;
}

static void choose_columns(lp_loop_t *l, uint32_t n_processors) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t across = (uint64_t)l->sizes[lp_row(l) - 1], length = (uint64_t)lp_length(l);
  g->threads = 256;
  g->vector = gs_vector(l, lp_row(l) - 1, 1);
  while (g->vector > 1 && shared_by_columns(l) > MOST_SHARED) g->vector /= 2;
  choose_width(l);
  const uint64_t bytes = bytes_at_once(l);
  g->chunks = bytes > 64 ? 1 : bytes > 32 ? 2 : 4;
  const uint64_t tiles = gs_divide_up(across, (uint64_t)g->team * g->vector) * gs_size_of_first(l, lp_row(l) - 1);
  const uint64_t parts = gs_divide_up(length, (uint64_t)(g->threads / g->team) * g->chunks);
  const uint64_t most = blocks_at_once(l, bytes) * n_processors;
  const uint64_t wanted = gs_at_least_one(most / gs_at_least_one(tiles));
  g->splits = (uint32_t)gs_at_least_one(parts < wanted ? parts : wanted);
}

/* Are places those of the row, whatever the column? */
static int are_same_for_columns(const lp_loop_t *l, const lp_access_t *store) {
  for (uint32_t i = 0; i < store->n_indices; i++) {
    const lp_access_t *index = &l->accesses[store->indices[i].load];
    for (int32_t d = 0; d < lp_row(l); d++)
      if (index->strides[d]) return 0;
  }
  return 1;
}

/* Rows of a segment whose elements a thread reads before it adds them: a part of the segment. */
static uint32_t rows_at_once(const lp_loop_t *l) {
  const uint64_t bytes = bytes_at_once(l);
  return bytes > 64 ? 2 : bytes > 32 ? 4 : 8;
}

static void choose_places(lp_loop_t *l, uint32_t n_processors) {
  lp_gpu_t *g = &l->gpu;
  const lp_access_t *store = &l->accesses[l->n_loads];
  AOT_ASSERT(l->n_stores == 1 && store->n_indices > 0); /* is_store_alone */
  const uint64_t length = (uint64_t)lp_length(l), columns = gs_size_of_first(l, lp_row(l));
  double n_places = 1;
  for (uint32_t i = 0; i < store->n_indices; i++) n_places *= (double)store->indices[i].size;
  g->vector = g->team = 1;
  g->threads = columns < 256 * (uint64_t)n_processors ? 64 : 256;
  if (length <= WALKED || length > INT32_MAX || n_places > INT32_MAX || !are_same_for_columns(l, store)) return;
  g->threads = 256;
  g->vector = gs_vector(l, lp_row(l) - 1, 1);
  choose_width(l);
  g->chunks = store->adds ? rows_at_once(l) : 1;
  AOT_ASSERT(LP_GPU_SEGMENT % g->chunks == 0); /* a segment's rows are read in whole chunks */
  g->splits = (uint32_t)gs_divide_up(length, (uint64_t)(g->threads / g->team) * LP_GPU_SEGMENT);
}

int lp_gpu_fit(lp_loop_t *l, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  uint64_t blocks;
  if (!g->threads || g->threads % WARP || g->threads > 1024 || !g->team || g->threads % g->team || !g->vector) return 0;
  if (gs_vector(l, lp_inner(l), 1) % g->vector) return 0;
  if (g->kind == LP_GPU_COLUMNS) {
    const uint64_t across = (uint64_t)l->sizes[lp_row(l) - 1];
    if (shared_by_columns(l) > MOST_SHARED) return 0;
    blocks = gs_divide_up(across, (uint64_t)g->team * g->vector) * gs_size_of_first(l, lp_row(l) - 1) * g->splits;
  } else if (g->kind == LP_GPU_PLACES) {
    const uint64_t tiles = gs_divide_up((uint64_t)l->sizes[lp_row(l) - 1], (uint64_t)g->team * g->vector) *
                           gs_size_of_first(l, lp_row(l) - 1);
    blocks = lp_gpu_has_begin(l) ? tiles * g->splits : gs_divide_up(gs_size_of_first(l, lp_row(l)), g->threads);
  } else if (g->kind == LP_GPU_ROWS) {
    if (g->team < WARP && (WARP % g->team || gs_has_scan(l) || gs_size_of_first(l, lp_row(l)) % (WARP / g->team)))
      return 0;
    if ((g->team > WARP && g->team % WARP) || (g->team > WARP && g->threads / g->team > MOST_TEAMS)) return 0;
    if (g->splits > 1 && (l->n_passes > 1 || g->team != g->threads)) return 0;
    if (gs_has_scan(l) && (g->vector > 1 || g->splits > 1)) return 0;
    const uint64_t n = gs_size_of_first(l, lp_row(l)), teams = g->threads / g->team;
    gs_hold(l);
    blocks = gs_divide_up(n, teams) * g->splits;
    if (lp_gpu_goes_on(l) && !gs_fit_blocks(l, n, m)) return 0;
    if (lp_gpu_goes_on(l)) blocks = g->blocks;
    g->parts = !gs_has_across(l) ? 0 : (uint32_t)(lp_gpu_goes_on(l) ? blocks * teams : gs_at_least_one(n));
    if (g->parts && lp_gpu_joins_teams(l)) g->parts = (uint32_t)blocks;
  } else {
    blocks = gs_divide_up(gs_divide_up(gs_size_of_first(l, l->rank), g->vector), g->threads);
  }
  g->blocks = (uint32_t)blocks;
  return blocks <= INT32_MAX;
}

static int stores_by_index(const lp_loop_t *l) {
  for (uint32_t k = l->n_loads; k < gs_n_accesses(l); k++)
    if (l->accesses[k].n_indices) return 1;
  return 0;
}

/* Next to it a loop has nothing that needs a schedule. */
static int is_store_alone(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (l->accesses[k].draws) return 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce || l->insts[k].scan) return 0;
  return l->n_stores == 1;
}

/* ---- sums across rows as columns ---- */

/* Has the loop rows for nothing but to be summed across? */
static int is_across_alone(const lp_loop_t *l) {
  int n = 0;
  if (l->rank != 2) return 0;
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    if (inst->scan || lp_reduces_row(inst) || (inst->reduce == LP_ACROSS && inst->of_row)) return 0;
    if (lp_reads(inst->text, LP_TK_LENGTH, 0) || lp_reads(inst->text, LP_TK_PLACE, 0)) return 0;
    n += inst->reduce == LP_ACROSS;
  }
  for (uint32_t s = l->n_loads; s < gs_n_accesses(l); s++)
    if (l->accesses[s].of_row || l->accesses[s].n_indices) return 0;
  return n > 0;
}

/* Rows and columns change places: sums of columns that become rows, or rows that become columns again. */
static void turn(lp_loop_t *l, int32_t from, int32_t to) {
  AOT_ASSERT(l->rank == 2 && l->reduced == 2); /* rows in dimension 0, their elements in dimension 1 */
  lp_swap_dims(l, 0, 1);
  for (uint32_t s = l->n_loads; s < gs_n_accesses(l); s++)
    if (l->insts[l->accesses[s].inst].reduce == from) l->accesses[s].of_row = to == LP_SUM;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == from) l->insts[k].reduce = to;
  lp_schedule(l);
}

/* Are the dimensions that are reduced the last ones? */
static int is_row_last(const lp_loop_t *l) {
  const int32_t row = l->rank - __builtin_popcount(l->reduced);
  return l->reduced == ((1u << l->rank) - 1) >> row << row;
}

int lp_gpu_schedule(lp_loop_t *l, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  AOT_ASSERT(is_row_last(l)); /* lp_simplify left it so */
  lp_schedule(l);
  if (is_across_alone(l)) {
    turn(l, LP_ACROSS, LP_SUM);
    if (!l->columns) turn(l, LP_SUM, LP_ACROSS);
  }
  if (gs_n_accesses(l) > LP_GPU_MOST_POINTERS) return 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce > LP_ACROSS || l->insts[k].scan > LP_LOG_ADD) return 0;
  const int has_places = stores_by_index(l);
  if (has_places && !is_store_alone(l)) return 0;
  sum_in_float(l);
  l->columns &= !gs_has_scan(l);
  l->columns |= has_places && l->reduced;
  *g = (lp_gpu_t){.kind = !l->reduced  ? LP_GPU_POINTS
                          : has_places ? LP_GPU_PLACES
                          : l->columns ? LP_GPU_COLUMNS
                                       : LP_GPU_ROWS,
                  .splits = 1};
  g->wide = is_wide(l);
  g->coarse = reads_halves_alone(l);
  if (g->kind == LP_GPU_PLACES) choose_places(l, m->n_processors);
  else if (g->kind == LP_GPU_COLUMNS) choose_columns(l, m->n_processors);
  else if (g->kind == LP_GPU_ROWS) gs_choose_rows(l, m);
  else choose_points(l);
  return lp_gpu_fit(l, m);
}
