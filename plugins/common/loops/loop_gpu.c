/* The schedule of a loop on a GPU: who takes which elements. A rule finds it from sizes, strides and alignments alone,
 * so equal layers share one text.
 *
 *     points     a thread takes a vector of neighbours, once: as many threads as there are vectors
 *     rows       a warp takes a short row, a block a long one; a thread holds its part in registers where that fits, else
 *                the row in shared memory
 *     columns    a block takes a tile of columns and every so many rows of it
 *     places     stores by index tensors: a team takes some columns of a segment of rows that are sorted by their places
 *
 * Where rows or tiles are too few to fill the device, a reduction is made in parts, one a block, and a second kernel
 * joins these in their order. So sums do not depend on who comes first: a thread adds its own elements in order, then
 * threads, warps and parts are joined by halves. Floats are added in float; the order above makes up for what the CPU's
 * sums in double have. */
#include "common/loops/loop_print.h"

#include <aot/inline.h>
#include <string.h>

enum {
  WARP = 32,
  ACCESS = 16,         /* bytes of the widest access */
  HELD = 160,          /* bytes of a row that a thread may hold in registers, */
  HELD_BY_1024 = 112,  /* and in a block of 1024, which has half the registers; */
  HELD_AT_LEAST = 256, /* of one vector */
  MOST_CHUNKS = 16,
  MOST_SHARED = 48 << 10, /* bytes of shared memory that every block may have */
  LONG_SCAN = 1 << 12,
  LONG_ROW = 1 << 15, /* elements from which on few rows are cut into parts */
  WALKED = 32,        /* rows that are not worth being sorted by their places */
  BLOCKS_A_PROCESSOR = 6,
  THREADS_A_PROCESSOR = 1024, /* of blocks that go on from row to row, */
  THREADS_WITH_SUMS = 768,    /* and of those that have sums across rows in registers */
  TEAMS_TOGETHER = 384,       /* threads of a block of several teams */
  MOST_TEAMS = 15,            /* each has a barrier */
  LARGE_TEAM = 512,           /* from which on rows are rather in shared memory than in registers */
  SHARED_BESIDE = 2 << 10,    /* bytes that a block has of it beside its rows, for reductions and for the driver */
  OLDEST_WITH_COPIES = 80,    /* architecture that copies to shared memory behind a thread's back, */
  OLDEST_WITH_BULK = 90       /* and whole rows of it */
};

const lp_gpu_machine_t lp_gpu_h100 = {90, 132, 227 << 10, 228 << 10};

static uint32_t n_accesses(const lp_loop_t *l) { return l->n_loads + l->n_stores; }
static uint64_t at_least_one(uint64_t n) { return n ? n : 1; }
static uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* ---- sums in float ---- */

/* A double of each element is meant; one of a row that comes of floats is how the CPU adds. */
static int is_wide_for_sums(const lp_loop_t *l, const uint8_t *is_meant, uint32_t k) {
  const lp_inst_t *inst = &l->insts[k];
  if (!inst->of_row) return 0;
  for (uint32_t a = 0; a < inst->n_args; a++) {
    const lp_arg_t *arg = &inst->args[a];
    if (arg->kind == LP_INST && l->insts[arg->index].dtype == AOT_F64 && is_meant[arg->index]) return 0;
    if (arg->kind != LP_LOAD && arg->kind != LP_DRAWN) continue;
    const int32_t dtype = l->accesses[arg->index].dtype;
    if (dtype == AOT_F64 || !lp_is_float(dtype)) return 0;
  }
  return 1;
}

static void sum_in_float(lp_loop_t *l) {
  uint8_t is_meant[LP_INSTS] = {0};
  for (uint32_t s = l->n_loads; s < n_accesses(l); s++)
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

/* A store that does not go along with the elements. */
static int is_apart(const lp_loop_t *l, uint32_t k) {
  return k >= l->n_loads && (l->accesses[k].of_row || l->insts[l->accesses[k].inst].reduce == LP_ACROSS);
}

/* A load whose elements have places, or bounds, of their own: not those of a vector. */
static int is_single(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector) {
  const lp_access_t *a = &l->accesses[k];
  if (k >= l->n_loads && a->n_indices) return 1;
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (l->columns || l->accesses[a->indices[i].load].moves) return 1;
  if (!a->bounded) return 0;
  return a->strides[dim] != 1 || a->begin[dim] % (int64_t)vector || a->end[dim] % (int64_t)vector;
}

static int is_aligned(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector) {
  const lp_access_t *a = &l->accesses[k];
  const uint64_t bytes = vector * aot_dtype_size(a->dtype);
  if (!a->align || a->align % (bytes < ACCESS ? bytes : ACCESS)) return 0;
  for (int32_t d = 0; d < l->rank; d++)
    if (d != dim && a->strides[d] % vector) return 0;
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (a->indices[i].stride % vector) return 0;
  return 1;
}

/* Can access k be made `vector` neighbours of dimension `dim` at a time? What does not step by one is read singly. */
static int takes_vectors(const lp_loop_t *l, uint32_t k, int32_t dim, uint32_t vector) {
  const lp_access_t *a = &l->accesses[k];
  return a->draws || a->counts || is_apart(l, k) || a->strides[dim] != 1 || is_single(l, k, dim, vector) ||
         is_aligned(l, k, dim, vector);
}

int lp_gpu_is_vector(const lp_loop_t *l, uint32_t k) {
  const int32_t dim = lp_inner(l);
  const lp_access_t *a = &l->accesses[k];
  return l->gpu.vector > 1 && !a->draws && !a->counts && !is_apart(l, k) && a->strides[dim] == 1 &&
         !is_single(l, k, dim, l->gpu.vector);
}

/* The most neighbours that a thread takes. by_smallest: 16 bytes of the smallest dtype, not of the largest. */
static uint32_t vector_of(const lp_loop_t *l, int32_t dim, int by_smallest) {
  uint64_t smallest = ACCESS, largest = 0;
  int is_store = 0;
  for (uint32_t k = 0; k < n_accesses(l); k++) {
    const lp_access_t *a = &l->accesses[k];
    const uint64_t size = aot_dtype_size(a->dtype);
    if (a->draws || a->counts || is_apart(l, k) || a->strides[dim] != 1) continue;
    smallest = size < smallest ? size : smallest;
    largest = size > largest ? size : largest;
    is_store |= k >= l->n_loads;
  }
  if (!largest || (l->gpu.kind == LP_GPU_POINTS && !is_store)) return 1;
  uint64_t vector = by_smallest ? ACCESS / smallest : ACCESS / largest;
  if (vector > 2 * ACCESS / largest) vector = 2 * ACCESS / largest;
  for (; vector > 1; vector /= 2) {
    int fits = l->sizes[dim] % (int64_t)vector == 0 || (l->gpu.kind == LP_GPU_POINTS && l->rank == 1);
    for (uint32_t k = 0; k < n_accesses(l) && fits; k++) fits = takes_vectors(l, k, dim, (uint32_t)vector);
    if (fits) break;
  }
  return (uint32_t)vector;
}

/* Do indices need 64 bits? With room for a grid's surplus of threads. */
static int is_wide(const lp_loop_t *l) {
  const double most = 2147483647.0 - 1024 * 1024;
  double n = 1;
  for (int32_t d = 0; d < l->rank; d++) n *= (double)l->sizes[d];
  for (uint32_t k = 0; k < n_accesses(l); k++) {
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

/* Of the first dimensions. */
static uint64_t size_of_first(const lp_loop_t *l, int32_t n_dims) {
  uint64_t n = 1;
  for (int32_t d = 0; d < n_dims; d++) n *= (uint64_t)l->sizes[d];
  return n;
}

/* ---- kinds ---- */

static int is_flat(const lp_loop_t *l) {
  for (uint32_t k = 0; k < n_accesses(l); k++)
    if (l->accesses[k].n_indices || l->accesses[k].bounded) return 0;
  return l->rank == 1 && n_accesses(l) + LP_GPU_NUMBERS <= LP_GPU_MOST_POINTERS;
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

static void choose_points(lp_loop_t *l) {
  l->gpu.threads = l->gpu.team = 256;
  l->gpu.vector = vector_of(l, l->rank - 1, 0);
  l->gpu.tensors = (uint32_t)is_flat(l);
}

/* The passes that read a load, and whether the first one does. */
static uint32_t n_passes_of(const lp_loop_t *l, uint32_t load, uint32_t *out_in_first) {
  uint32_t n = 0;
  lp_pass_t pass;
  for (uint32_t k = 0; k < l->n_passes; k++) {
    lp_find_pass(l, k, &pass);
    n += pass.loads[load];
    if (k == 0) *out_in_first = pass.loads[load];
  }
  return n;
}

/* A row's own elements, in pieces of at least 4 bytes, where they are at hand before the row is. */
static int may_be_staged(const lp_loop_t *l, uint32_t load) {
  const lp_access_t *a = &l->accesses[load];
  int is_own = 0;
  for (int32_t d = 0; d < lp_row(l); d++) is_own |= a->strides[d] != 0;
  return is_own && lp_row(l) + 1 == l->rank && a->strides[l->rank - 1] == 1 && !a->draws && !a->counts && !a->bounded &&
         !a->n_indices && l->gpu.vector * aot_dtype_size(a->dtype) >= 4;
}

int lp_gpu_is_staged(const lp_loop_t *l, uint32_t load) {
  return l->gpu.stages && load < l->n_loads && may_be_staged(l, load);
}

uint64_t lp_gpu_staged_at(const lp_loop_t *l, uint32_t load) {
  uint64_t at = 0;
  for (uint32_t k = 0; k < load; k++)
    if (may_be_staged(l, k))
      at += divide_up((uint64_t)lp_length(l) * aot_dtype_size(l->accesses[k].dtype), ACCESS) * ACCESS;
  return at;
}

/* Do all that are staged lie so that they can be copied as rows of 16 bytes' multiples? */
static int may_be_bulk(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const uint64_t size = aot_dtype_size(l->accesses[k].dtype);
    if (lp_gpu_is_staged(l, k) &&
        ((uint64_t)lp_length(l) * size % ACCESS || !is_aligned(l, k, l->rank - 1, (uint32_t)(ACCESS / size))))
      return 0;
  }
  return 1;
}

int lp_is_held(const lp_loop_t *l, uint32_t load) {
  uint32_t in_first = 0;
  if (l->accesses[load].counts || lp_gpu_is_staged(l, load)) return 0;
  if (is_single(l, load, lp_inner(l), l->gpu.vector)) return 0;
  if (l->gpu.kind == LP_GPU_COLUMNS) return lp_gpu_moves(l, load);
  if (l->gpu.kind != LP_GPU_ROWS || !l->gpu.chunks || !lp_moves(l, load) || l->accesses[load].draws) return 0;
  return n_passes_of(l, load, &in_first) > 1 || in_first;
}

/* Bytes an element of a row that registers hold: what the first pass reads, or what is there from pass to pass. */
static uint64_t held_bytes(const lp_loop_t *l) {
  uint64_t first = 0, later = 0;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const uint64_t size = aot_dtype_size(l->accesses[k].dtype);
    uint32_t in_first = 0;
    if (!lp_is_held(l, k)) continue;
    const uint32_t n = n_passes_of(l, k, &in_first);
    first += in_first ? size : 0;
    later += n > 1 ? size : 0;
  }
  for (uint32_t keep = 1; keep <= l->n_kept; keep++) later += lp_keep_size(l, keep);
  return first > later ? first : later;
}

/* Bytes an element of the loads that instruction k is made of. */
static uint64_t bytes_beneath(const lp_loop_t *l, uint32_t k) {
  uint8_t on_way[LP_INSTS] = {0}, is_read[LP_INSTS * LP_ARGS] = {0};
  uint64_t bytes = 0;
  on_way[k] = 1;
  for (uint32_t i = k + 1; i-- > 0;)
    for (uint32_t a = 0; on_way[i] && a < l->insts[i].n_args; a++) {
      const lp_arg_t *arg = &l->insts[i].args[a];
      if (arg->kind == LP_INST && !l->insts[arg->index].of_row && !l->insts[arg->index].keep) on_way[arg->index] = 1;
      if (arg->kind != LP_LOAD || is_read[arg->index] || !lp_moves(l, arg->index)) continue;
      is_read[arg->index] = 1;
      bytes += aot_dtype_size(l->accesses[arg->index].dtype);
    }
  return bytes;
}

static void drop_kept(lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++) l->insts[k].keep = 0;
  l->n_kept = 0;
}

/* Registers keep what later passes need, if it takes fewer than what it is made of; besides what lp_schedule keeps. */
static void keep_in_registers(lp_loop_t *l) {
  for (uint32_t k = l->n_insts; k-- > 0;) {
    lp_inst_t *inst = &l->insts[k];
    if (inst->of_row || inst->keep || inst->pass + 1 >= l->n_passes || !lp_is_needed_later(l, k)) continue;
    if (bytes_beneath(l, k) > aot_dtype_size(lp_value_dtype(inst->dtype))) inst->keep = ++l->n_kept;
  }
}

/* Bytes an element of sums across rows. */
static uint64_t across_bytes(const lp_loop_t *l) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == LP_ACROSS && !l->insts[k].of_row) bytes += aot_dtype_size(lp_gpu_lane(&l->insts[k]));
  return bytes;
}

static int has_across(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == LP_ACROSS) return 1;
  return 0;
}

/* A team scans as many elements as it has threads, one after another: along rows, also where they lie across memory. */
static int has_scan(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].scan) return 1;
  return 0;
}

static int fits_registers(const lp_loop_t *l, uint32_t team) {
  const uint64_t chunks = divide_up((uint64_t)lp_length(l), (uint64_t)team * l->gpu.vector);
  const uint64_t bytes = at_least_one(held_bytes(l) + across_bytes(l));
  const uint64_t most = team > 512 ? HELD_BY_1024 : chunks == 1 ? HELD_AT_LEAST : HELD;
  return chunks <= MOST_CHUNKS && chunks * l->gpu.vector * bytes <= most;
}

/* Without what would be kept. */
static int fits_registers_alone(lp_loop_t *l, uint32_t team) {
  const uint32_t n_kept = l->n_kept;
  l->n_kept = 0;
  const int fits = fits_registers(l, team);
  l->n_kept = n_kept;
  return fits;
}

/* Does a thread of such a team hold its part of a row? Else what would be kept is computed again, if the loads are held
 * then; else nothing is. */
static int holds(lp_loop_t *l, uint32_t team) {
  l->gpu.chunks = 1; /* so that lp_is_held tells what would be held */
  if (has_scan(l)) return 0;
  if (fits_registers(l, team)) return 1;
  if (!l->n_kept) return 0;
  lp_inst_t *insts = l->insts;
  uint32_t kept[LP_INSTS];
  const uint32_t n_kept = l->n_kept;
  for (uint32_t k = 0; k < l->n_insts; k++) kept[k] = insts[k].keep;
  drop_kept(l);
  if (fits_registers(l, team)) return 1;
  for (uint32_t k = 0; k < l->n_insts; k++) insts[k].keep = kept[k];
  l->n_kept = n_kept;
  return 0;
}

/* The smallest team that holds a row, at first a warp, then blocks with as many threads as the row has vectors, or half
 * as many, ..; a larger one where rows are few. */
static void choose_team(lp_loop_t *l, uint64_t rows, uint32_t n_processors) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t vectors = at_least_one(divide_up((uint64_t)lp_length(l), g->vector));
  const int are_few = rows < 4u * n_processors;
  g->team = WARP;
  g->threads = 128;
  if ((!are_few || vectors <= 2 * WARP) && holds(l, WARP)) return;
  for (uint64_t chunks = MOST_CHUNKS; chunks > 0; chunks--) {
    const uint64_t team = divide_up(divide_up(vectors, chunks), WARP) * WARP;
    if (team < 3 * WARP || team > 1024 || (are_few && chunks > 1 && team < 512)) continue;
    g->team = g->threads = (uint32_t)team;
    if (holds(l, g->team)) return;
  }
  const uint64_t most = divide_up(vectors, WARP) * WARP;
  g->team = g->threads = most < 1024 ? (uint32_t)most : 1024;
}

/* Threads of a multiprocessor whose registers hold what such a loop has. */
static uint32_t most_threads(const lp_loop_t *l) {
  return l->gpu.stages && across_bytes(l) ? THREADS_WITH_SUMS : THREADS_A_PROCESSOR;
}

/* Teams of a block, and rows of each in shared memory: three, or two, or of the only block of a multiprocessor one. 0: a
 * row is too long. */
static int choose_stages(lp_loop_t *l, const lp_gpu_machine_t *m, uint32_t teams) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t bytes = lp_gpu_staged_at(l, l->n_loads);
  for (; teams > 0; teams--) {
    g->threads = g->team * teams;
    for (uint32_t blocks = (uint32_t)at_least_one(most_threads(l) / g->threads); blocks > 0; blocks--)
      for (g->stages = 3; g->stages + (blocks == 1) > 1; g->stages--) {
        const uint64_t shared = bytes * g->stages * teams + SHARED_BESIDE;
        if (shared <= m->block_shared && shared <= m->processor_shared / blocks) return 1;
      }
  }
  g->stages = 0;
  return 0;
}

/* Threads of a block that takes rows from shared memory: those of which the fewest are idle at the end of one. */
static uint32_t large_team(uint64_t vectors) {
  uint64_t best = LARGE_TEAM;
  for (uint64_t team = LARGE_TEAM; team <= 1024; team += 4 * WARP)
    if (divide_up(vectors, team) * team <= divide_up(vectors, best) * best) best = team;
  return (uint32_t)best;
}

/* Rows pass through shared memory, on their way while others are computed, where sums across rows let teams go on from
 * row to row, and where registers of a team that is not large do not hold one. 0: they do not. */
static int choose_staged(lp_loop_t *l, uint64_t rows, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  const int has_sums = across_bytes(l) != 0;
  g->chunks = 1;
  if (m->arch < OLDEST_WITH_COPIES || rows < 2 * m->n_processors || !lp_gpu_staged_at(l, l->n_loads)) return 0;
  if (!has_sums && (l->n_passes == 1 || fits_registers_alone(l, LARGE_TEAM - WARP))) return 0;
  const lp_gpu_t before = *g;
  g->stages = 1;
  if (has_sums) choose_team(l, rows, m->n_processors);
  else g->team = large_team(divide_up((uint64_t)lp_length(l), g->vector));
  const uint32_t teams = TEAMS_TOGETHER / g->team;
  if (choose_stages(l, m, teams > MOST_TEAMS ? MOST_TEAMS : teams ? teams : 1)) return 1;
  *g = before;
  return 0;
}

/* What goes on from row to row has as many blocks as run at once. */
static uint32_t resident_blocks(const lp_loop_t *l, const lp_gpu_machine_t *m) {
  const lp_gpu_t *g = &l->gpu;
  const uint64_t by_threads = at_least_one(most_threads(l) / g->threads);
  const uint64_t by_shared = at_least_one(m->processor_shared / (g->shared + SHARED_BESIDE));
  return (uint32_t)(by_threads < by_shared ? by_threads : by_shared);
}

static void choose_rows(lp_loop_t *l, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  const uint32_t n_processors = m->n_processors;
  const uint64_t n = size_of_first(l, lp_row(l)), length = (uint64_t)lp_length(l);
  g->vector = has_scan(l) ? 1 : vector_of(l, l->rank - 1, 1);
  keep_in_registers(l);
  if (has_scan(l)) {
    g->team = length <= 2 * WARP ? WARP : length <= LONG_SCAN ? 256 : 1024;
    g->threads = g->team == WARP ? 128 : g->team;
  } else if (l->n_passes == 1 && n < n_processors && length >= LONG_ROW && !has_across(l)) {
    g->team = g->threads = 512;
    const uint64_t parts = divide_up(length, 8u * g->threads * g->vector), most = 2 * n_processors / at_least_one(n);
    g->splits = (uint32_t)at_least_one(parts < most ? parts : most);
  } else if (!choose_staged(l, n, m)) {
    choose_team(l, n, n_processors);
  }
  g->blocks = 0;
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
}

static void choose_columns(lp_loop_t *l, uint32_t n_processors) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t across = (uint64_t)l->sizes[lp_row(l) - 1], length = (uint64_t)lp_length(l);
  uint64_t bytes = 0;
  g->threads = 256;
  g->vector = vector_of(l, lp_row(l) - 1, 1);
  while (g->vector > 1 && shared_by_columns(l) > MOST_SHARED) g->vector /= 2;
  choose_width(l);
  for (uint32_t k = 0; k < l->n_loads; k++) bytes += aot_dtype_size(l->accesses[k].dtype) * g->vector;
  g->chunks = bytes > 64 ? 1 : bytes > 32 ? 2 : 4;
  const uint64_t tiles = divide_up(across, (uint64_t)g->team * g->vector) * size_of_first(l, lp_row(l) - 1);
  const uint64_t parts = divide_up(length, (uint64_t)(g->threads / g->team) * g->chunks);
  const uint64_t wanted = divide_up((uint64_t)BLOCKS_A_PROCESSOR * n_processors, at_least_one(tiles));
  g->splits = (uint32_t)at_least_one(parts < wanted ? parts : wanted);
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

static void choose_places(lp_loop_t *l, uint32_t n_processors) {
  lp_gpu_t *g = &l->gpu;
  const lp_access_t *store = &l->accesses[l->n_loads];
  const uint64_t length = (uint64_t)lp_length(l), columns = size_of_first(l, lp_row(l));
  double n_places = 1;
  for (uint32_t i = 0; i < store->n_indices; i++) n_places *= (double)store->indices[i].size;
  g->chunks = g->vector = g->team = 1;
  g->threads = columns < 256 * (uint64_t)n_processors ? 64 : 256;
  if (length <= WALKED || length > INT32_MAX || n_places > INT32_MAX || !are_same_for_columns(l, store)) return;
  g->threads = 256;
  g->vector = vector_of(l, lp_row(l) - 1, 1);
  choose_width(l);
  g->splits = (uint32_t)divide_up(length, LP_GPU_SEGMENT);
}

int lp_gpu_adds_vectors(const lp_loop_t *l) {
  return l->gpu.vector > 1 && l->accesses[l->n_loads].strides[lp_row(l) - 1] == 1 &&
         is_aligned(l, l->n_loads, lp_row(l) - 1, l->gpu.vector);
}

static void hold(lp_loop_t *l) {
  lp_gpu_t *g = &l->gpu;
  const int is_in_shared = g->stages && !across_bytes(l);
  if (g->splits == 1 && !is_in_shared && holds(l, g->team)) {
    g->chunks = (uint32_t)at_least_one(divide_up((uint64_t)lp_length(l), (uint64_t)g->team * g->vector));
    return;
  }
  g->chunks = 0;
  drop_kept(l);
}

/* Of rows that teams go on with: shared memory, and blocks; as they are given, where they are not too many. 0: too much. */
static int fit_blocks(lp_loop_t *l, uint64_t rows, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t teams = g->threads / g->team, shared = lp_gpu_staged_at(l, l->n_loads) * g->stages * teams;
  if (g->stages && (!shared || shared + SHARED_BESIDE > m->block_shared || has_scan(l) || g->splits > 1)) return 0;
  if (g->bulk && (!g->stages || g->team == WARP || m->arch < OLDEST_WITH_BULK || !may_be_bulk(l))) return 0;
  g->shared = (uint32_t)shared;
  g->residents = g->stages ? resident_blocks(l, m) : 0;
  if (!g->blocks) g->blocks = m->n_processors * resident_blocks(l, m);
  if (g->blocks > divide_up(rows, teams)) g->blocks = (uint32_t)at_least_one(divide_up(rows, teams));
  return 1;
}

int lp_gpu_goes_on(const lp_loop_t *l) { return l->gpu.kind == LP_GPU_ROWS && (l->gpu.stages || across_bytes(l)); }

int lp_gpu_joins_teams(const lp_loop_t *l) {
  const lp_gpu_t *g = &l->gpu;
  const uint64_t elements = (uint64_t)(g->threads / g->team) * (uint64_t)lp_length(l);
  return g->threads > g->team && g->chunks && elements * sizeof(double) <= g->shared;
}

int lp_gpu_fit(lp_loop_t *l, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  uint64_t blocks;
  if (!g->threads || g->threads % WARP || g->threads > 1024 || !g->team || g->threads % g->team || !g->vector) return 0;
  if (vector_of(l, lp_inner(l), 1) % g->vector) return 0;
  if (g->kind == LP_GPU_COLUMNS) {
    const uint64_t across = (uint64_t)l->sizes[lp_row(l) - 1];
    if (shared_by_columns(l) > MOST_SHARED) return 0;
    blocks = divide_up(across, (uint64_t)g->team * g->vector) * size_of_first(l, lp_row(l) - 1) * g->splits;
  } else if (g->kind == LP_GPU_PLACES) {
    const uint64_t tiles =
        divide_up((uint64_t)l->sizes[lp_row(l) - 1], (uint64_t)g->team * g->vector) * size_of_first(l, lp_row(l) - 1);
    blocks = lp_gpu_has_begin(l) ? tiles * divide_up(g->splits, g->threads / g->team)
                                 : divide_up(size_of_first(l, lp_row(l)), g->threads);
  } else if (g->kind == LP_GPU_ROWS) {
    if (g->team % WARP || (g->team > WARP && g->threads / g->team > MOST_TEAMS)) return 0;
    if (g->splits > 1 && (l->n_passes > 1 || g->team != g->threads)) return 0;
    if (has_scan(l) && (g->vector > 1 || g->splits > 1)) return 0;
    const uint64_t n = size_of_first(l, lp_row(l)), teams = g->threads / g->team;
    hold(l);
    blocks = divide_up(n, teams) * g->splits;
    if (lp_gpu_goes_on(l) && !fit_blocks(l, n, m)) return 0;
    if (lp_gpu_goes_on(l)) blocks = g->blocks;
    g->parts = !has_across(l) ? 0 : (uint32_t)(lp_gpu_goes_on(l) ? blocks * teams : at_least_one(n));
    if (g->parts && lp_gpu_joins_teams(l)) g->parts = (uint32_t)blocks;
  } else {
    blocks = divide_up(divide_up(size_of_first(l, l->rank), g->vector), g->threads);
  }
  g->blocks = (uint32_t)blocks;
  return blocks <= INT32_MAX;
}

int lp_gpu_moves(const lp_loop_t *l, uint32_t load) {
  const lp_access_t *a = &l->accesses[load];
  if (lp_moves(l, load) || !l->columns) return lp_moves(l, load);
  if (a->strides[lp_row(l) - 1] != 0 || a->bounded >> (lp_row(l) - 1) & 1u) return 1;
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (a->indices[i].load < load && lp_gpu_moves(l, a->indices[i].load)) return 1;
  return a->bounded && a->outside.kind == LP_LOAD && a->outside.index < load && lp_gpu_moves(l, a->outside.index);
}

static int stores_by_index(const lp_loop_t *l) {
  for (uint32_t k = l->n_loads; k < n_accesses(l); k++)
    if (l->accesses[k].n_indices) return 1;
  return 0;
}

/* Beside it a loop has nothing that needs a schedule. */
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
  for (uint32_t s = l->n_loads; s < n_accesses(l); s++)
    if (l->accesses[s].of_row || l->accesses[s].n_indices) return 0;
  return n > 0;
}

/* Rows and columns change places: sums of columns that become rows, or rows that become columns again. */
static void turn(lp_loop_t *l, int32_t from, int32_t to) {
  lp_swap_dims(l, 0, 1);
  for (uint32_t s = l->n_loads; s < n_accesses(l); s++)
    if (l->insts[l->accesses[s].inst].reduce == from) l->accesses[s].of_row = to == LP_SUM;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == from) l->insts[k].reduce = to;
  lp_schedule(l);
}

int lp_gpu_schedule(lp_loop_t *l, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  lp_schedule(l);
  if (is_across_alone(l)) {
    turn(l, LP_ACROSS, LP_SUM);
    if (!l->columns) turn(l, LP_SUM, LP_ACROSS);
  }
  if (n_accesses(l) > LP_GPU_MOST_POINTERS) return 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce > LP_ACROSS || l->insts[k].scan > LP_LOG_ADD) return 0;
  const int has_places = stores_by_index(l);
  if (has_places && !is_store_alone(l)) return 0;
  sum_in_float(l);
  l->columns &= !has_scan(l);
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
  else if (g->kind == LP_GPU_ROWS) choose_rows(l, m);
  else choose_points(l);
  return lp_gpu_fit(l, m);
}

/* ---- parts ---- */

uint64_t lp_gpu_results(const lp_loop_t *l) { return size_of_first(l, lp_row(l)); }

static uint64_t n_partial(const lp_loop_t *l, const lp_inst_t *inst) {
  if (inst->reduce == LP_ACROSS) return (inst->of_row ? 1 : (uint64_t)lp_length(l)) * l->gpu.parts;
  if (l->gpu.kind == LP_GPU_PLACES) /* the sums of a segment's first and last run */
    return inst == &l->insts[l->accesses[l->n_loads].inst] && lp_gpu_has_end(l) ? 2 * l->gpu.splits * lp_gpu_results(l)
                                                                                : 0;
  return lp_reduces_row(inst) && l->gpu.splits > 1 ? l->gpu.splits * lp_gpu_results(l) : 0;
}

uint64_t lp_gpu_sorted(const lp_loop_t *l) { return ((uint64_t)lp_length(l) * sizeof(uint32_t) + 15) / 16 * 16; }

uint64_t lp_gpu_partial(const lp_loop_t *l, uint32_t inst) {
  uint64_t at = lp_gpu_has_begin(l) ? 4 * lp_gpu_sorted(l) : 0;
  for (uint32_t k = 0; k < inst; k++)
    at += (n_partial(l, &l->insts[k]) * aot_dtype_size(lp_gpu_lane(&l->insts[k])) + 15) / 16 * 16;
  return at;
}

int32_t lp_gpu_lane(const lp_inst_t *inst) {
  if (!lp_is_float(inst->compute)) return AOT_I64;
  if (inst->scan == LP_LOG_ADD) return AOT_F64;
  return inst->reduce + inst->scan == LP_SUM && inst->dtype == AOT_F64 ? AOT_F64 : lp_value_dtype(inst->compute);
}

int lp_gpu_has_begin(const lp_loop_t *l) { return l->gpu.kind == LP_GPU_PLACES && l->gpu.splits > 1; }

/* Comparing all rows with all is worth it up to some ten thousands: they are spread over the device. */
uint32_t lp_gpu_begin_blocks(const lp_loop_t *l) {
  enum { FEWEST = 2048, MOST = 65536 };
  const uint64_t length = (uint64_t)l->sizes[l->rank - 1];
  return length < FEWEST || length > MOST ? 1 : (uint32_t)divide_up(length, LP_GPU_RANKED);
}

int lp_gpu_has_end(const lp_loop_t *l) {
  return l->gpu.parts || (l->gpu.splits > 1 && (l->gpu.kind != LP_GPU_PLACES || l->accesses[l->n_loads].adds));
}

uint32_t lp_gpu_n_pointers(const lp_loop_t *l) {
  if (l->gpu.tensors) return lp_gpu_shared_words(l) + l->gpu.tensors * lp_gpu_row_words(l);
  return n_accesses(l) + (uint32_t)lp_has_indices(l) + (lp_gpu_scratch(l) != 0);
}

uint64_t lp_gpu_scratch(const lp_loop_t *l) {
  return lp_gpu_has_begin(l) || lp_gpu_has_end(l) ? at_least_one(lp_gpu_partial(l, l->n_insts)) : 0;
}

/* Of sums across rows: the blocks of those that have an element for each of a row; one each of others. */
static uint64_t across_blocks(const lp_loop_t *l) {
  uint64_t n = 0;
  for (uint32_t s = l->n_loads; s < n_accesses(l); s++) {
    const lp_inst_t *inst = &l->insts[l->accesses[s].inst];
    if (inst->reduce == LP_ACROSS) n += inst->of_row ? 1 : divide_up((uint64_t)lp_length(l), WARP);
  }
  return n;
}

uint32_t lp_gpu_end_blocks(const lp_loop_t *l) {
  if (l->gpu.kind == LP_GPU_PLACES)
    return (uint32_t)divide_up((uint64_t)l->gpu.splits * lp_gpu_results(l), LP_GPU_END_THREADS);
  const uint64_t n = lp_gpu_results(l);
  return (uint32_t)(l->gpu.parts ? across_blocks(l) : l->columns ? divide_up(n, WARP) : n);
}

/* ---- tables of tensors ---- */

static int is_shared(const lp_loop_t *l, uint32_t k) {
  return k < l->n_loads && !l->accesses[k].draws && l->accesses[k].strides[0] == 0;
}

/* Of the accesses before this one. */
static uint32_t n_shared(const lp_loop_t *l, uint32_t access) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < access; k++) n += (uint32_t)is_shared(l, k);
  return n;
}

uint32_t lp_gpu_shared_words(const lp_loop_t *l) { return n_shared(l, n_accesses(l)); }

uint32_t lp_gpu_row_words(const lp_loop_t *l) { return LP_GPU_NUMBERS + n_accesses(l) - lp_gpu_shared_words(l); }

uint32_t lp_gpu_most_tensors(const lp_loop_t *l) {
  return (LP_GPU_MOST_POINTERS - lp_gpu_shared_words(l)) / lp_gpu_row_words(l);
}

uint32_t lp_gpu_word(const lp_loop_t *l, uint32_t access) {
  if (!l->gpu.tensors) return access;
  if (is_shared(l, access)) return n_shared(l, access);
  return lp_gpu_shared_words(l) + LP_GPU_NUMBERS + access - n_shared(l, access);
}
