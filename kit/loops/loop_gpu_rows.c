/* Who takes which rows: a warp a short one, a block a long one, several blocks parts of few; what of a row a thread
 * holds in registers from pass to pass, and which rows pass through shared memory on their way. */
#include "gpu_schedule.h"

#include <aot/assert.h>
#include <aot/inline.h>

enum {
  HELD = 160,          /* bytes of a row that a thread may hold in registers, */
  HELD_BY_1024 = 112,  /* and in a block of 1024, which has half the registers; */
  HELD_AT_LEAST = 256, /* of one vector */
  MOST_CHUNKS = 16,
  SHORTEST_TEAM = 4,  /* of a short row, */
  SHORT_CHUNKS = 4,   /* its vectors, */
  WARPS_AT_LEAST = 8, /* and warps of a processor that such teams still fill */
  LONG_SCAN = 1 << 12,
  LONG_ROW = 1 << 15,         /* elements from which on few rows are cut into parts */
  THREADS_A_PROCESSOR = 1024, /* of blocks that continue from row to row, */
  THREADS_WITH_SUMS = 768,    /* and of those that have sums across rows in registers */
  TEAMS_TOGETHER = 384,       /* threads of a block of several teams */
  HOLDING_TEAM = 256,         /* from which on rows are rather in shared memory than in registers, */
  LARGE_TEAM = 512,           /* and the least that takes them from there */
  SHARED_BESIDE = 2 << 10,    /* bytes that a block has of it next to its rows, for reductions and for the driver */
  OLDEST_WITH_COPIES = 80,    /* architecture that copies to shared memory after a thread's back, */
  OLDEST_WITH_BULK = 90       /* and whole rows of it */
};

/* The passes that read a load, and whether the first one does. */
static uint32_t n_passes_of(const lp_loop_t *l, uint32_t load, uint32_t *out_in_first) {
  AOT_ASSERT(l->n_passes > 0 && load < l->n_loads);
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
  AOT_ASSERT(load <= l->n_loads);
  for (uint32_t k = 0; k < load; k++)
    if (may_be_staged(l, k))
      at += gs_divide_up((uint64_t)lp_length(l) * aot_dtype_size(l->accesses[k].dtype), ACCESS) * ACCESS;
  return at;
}

/* Do all that are staged lie so that they can be copied as rows of 16 bytes' multiples? */
static int may_be_bulk(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const uint64_t size = aot_dtype_size(l->accesses[k].dtype);
    if (lp_gpu_is_staged(l, k) &&
        ((uint64_t)lp_length(l) * size % ACCESS || !gs_is_aligned(l, k, l->rank - 1, (uint32_t)(ACCESS / size))))
      return 0;
  }
  return 1;
}

int lp_is_held(const lp_loop_t *l, uint32_t load) {
  uint32_t in_first = 0;
  if (l->accesses[load].counts || lp_gpu_is_staged(l, load)) return 0;
  if (gs_is_single(l, load, lp_inner(l), l->gpu.vector)) return 0;
  if (l->gpu.kind == LP_GPU_COLUMNS) return lp_gpu_moves(l, load);
  if (l->gpu.kind == LP_GPU_PLACES) return l->gpu.chunks > 1 && lp_gpu_moves(l, load);
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
  AOT_ASSERT(k < l->n_insts && l->n_loads <= LP_INSTS * LP_ARGS);
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
    AOT_ASSERT(l->n_kept <= l->n_insts);
  }
}

/* Bytes an element of sums across rows. */
static uint64_t across_bytes(const lp_loop_t *l) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == LP_ACROSS && !l->insts[k].of_row) bytes += aot_dtype_size(lp_gpu_lane(&l->insts[k]));
  return bytes;
}

int gs_has_across(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce == LP_ACROSS) return 1;
  return 0;
}

int gs_has_scan(const lp_loop_t *l) {
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].scan) return 1;
  return 0;
}

static int fits_registers(const lp_loop_t *l, uint32_t team) {
  const uint64_t chunks = gs_divide_up((uint64_t)lp_length(l), (uint64_t)team * l->gpu.vector);
  const uint64_t bytes = gs_at_least_one(held_bytes(l) + across_bytes(l));
  const uint64_t most = team > 512 ? HELD_BY_1024 : chunks == 1 ? HELD_AT_LEAST : HELD;
  return chunks <= MOST_CHUNKS && chunks * l->gpu.vector * bytes <= most;
}

/* Without what would be stored. */
static int fits_registers_alone(lp_loop_t *l, uint32_t team) {
  const uint32_t n_kept = l->n_kept;
  l->n_kept = 0;
  const int fits = fits_registers(l, team);
  l->n_kept = n_kept;
  return fits;
}

/* Does a thread of such a team hold its part of a row? Else what would be stored is computed again, if the loads are
 * held then; else nothing is. */
static int holds(lp_loop_t *l, uint32_t team) {
  l->gpu.chunks = 1; /* so that lp_is_held reports what would be held */
  if (gs_has_scan(l)) return 0;
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

/* A part of a warp that has a short row, in one to four vectors a thread: several rows a warp, so that its threads are
 * not idle, and more of memory is on its way. Its warps have whole numbers of rows. 0: none has it. */
static uint32_t short_team(lp_loop_t *l, uint64_t rows, uint64_t vectors, uint32_t n_processors) {
  l->gpu.chunks = 1; /* so that lp_is_held reports what would be held */
  for (uint32_t team = SHORTEST_TEAM; team < WARP && !gs_has_scan(l); team *= 2)
    if (vectors <= SHORT_CHUNKS * team && rows % (WARP / team) == 0 &&
        rows * team / WARP >= (uint64_t)WARPS_AT_LEAST * n_processors && fits_registers(l, team))
      return team;
  return 0;
}

/* The smallest team that holds a row, at first a warp or a part of one, then blocks with as many threads as the row has
 * vectors, or half as many, ..; a larger one where rows are few. */
static void choose_team(lp_loop_t *l, uint64_t rows, uint32_t n_processors) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t vectors = gs_at_least_one(gs_divide_up((uint64_t)lp_length(l), g->vector));
  const int are_few = rows < 4u * n_processors;
  g->threads = 128;
  g->team = short_team(l, rows, vectors, n_processors);
  if (g->team) return;
  g->team = WARP;
  if ((!are_few || vectors <= 2 * WARP) && holds(l, WARP)) return;
  for (uint64_t chunks = MOST_CHUNKS; chunks > 0; chunks--) {
    const uint64_t team = gs_divide_up(gs_divide_up(vectors, chunks), WARP) * WARP;
    if (team < 3 * WARP || team > 1024 || (are_few && chunks > 1 && team < 512)) continue;
    g->team = g->threads = (uint32_t)team;
    if (holds(l, g->team)) return;
  }
  const uint64_t most = gs_divide_up(vectors, WARP) * WARP;
  g->team = g->threads = most < 1024 ? (uint32_t)most : 1024;
}

/* Threads of a multiprocessor whose registers hold what such a loop has. */
static uint32_t most_threads(const lp_loop_t *l) {
  return l->gpu.stages && across_bytes(l) ? THREADS_WITH_SUMS : THREADS_A_PROCESSOR;
}

/* Teams of a block, and rows of each in shared memory: three, or two, or of the only block of a multiprocessor one. 0:
 * a row is too long. */
static int choose_stages(lp_loop_t *l, const lp_gpu_machine_t *m, uint32_t teams) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t bytes = lp_gpu_staged_at(l, l->n_loads);
  const uint32_t step = g->team < WARP ? WARP / g->team : 1;
  AOT_ASSERT(teams % step == 0); /* so that it ends at 0 */
  for (; teams > 0; teams -= step) {
    g->threads = g->team * teams;
    for (uint32_t blocks = (uint32_t)gs_at_least_one(most_threads(l) / g->threads); blocks > 0; blocks--)
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
    if (gs_divide_up(vectors, team) * team <= gs_divide_up(vectors, best) * best) best = team;
  return (uint32_t)best;
}

/* Rows pass through shared memory, on their way while others are computed, where sums across rows let teams continue
 * from row to row, and where registers of a team that is not large do not hold one. 0: they do not. */
static int choose_staged(lp_loop_t *l, uint64_t rows, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  const int has_sums = across_bytes(l) != 0;
  g->chunks = 1;
  if (m->arch < OLDEST_WITH_COPIES || rows < 2 * m->n_processors || !lp_gpu_staged_at(l, l->n_loads)) return 0;
  if (!has_sums && (l->n_passes == 1 || fits_registers_alone(l, HOLDING_TEAM - WARP))) return 0;
  const lp_gpu_t before = *g;
  g->stages = 1;
  if (has_sums) choose_team(l, rows, m->n_processors);
  else g->team = large_team(gs_divide_up((uint64_t)lp_length(l), g->vector));
  const uint32_t teams = TEAMS_TOGETHER / g->team;
  const uint32_t most = g->team > WARP ? MOST_TEAMS : TEAMS_TOGETHER;
  if (choose_stages(l, m, teams > most ? most : teams ? teams : 1)) {
    /* Long rows are copied faster whole; of short ones some are and some are not (bench/cuda/README.md). */
    g->bulk = !has_sums && m->arch >= OLDEST_WITH_BULK && may_be_bulk(l);
    return 1;
  }
  *g = before;
  return 0;
}

/* What continues from row to row has as many blocks as run at once. */
static uint32_t resident_blocks(const lp_loop_t *l, const lp_gpu_machine_t *m) {
  const lp_gpu_t *g = &l->gpu;
  const uint64_t by_threads = gs_at_least_one(most_threads(l) / g->threads);
  const uint64_t by_shared = gs_at_least_one(m->processor_shared / (g->shared + SHARED_BESIDE));
  return (uint32_t)(by_threads < by_shared ? by_threads : by_shared);
}

void gs_choose_rows(lp_loop_t *l, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  const uint32_t n_processors = m->n_processors;
  const uint64_t n = gs_size_of_first(l, lp_row(l)), length = (uint64_t)lp_length(l);
  g->vector = gs_has_scan(l) ? 1 : gs_vector(l, l->rank - 1, 1);
  keep_in_registers(l);
  if (gs_has_scan(l)) {
    g->team = length <= 2 * WARP ? WARP : length <= LONG_SCAN ? 256 : 1024;
    g->threads = g->team == WARP ? 128 : g->team;
  } else if (l->n_passes == 1 && n < n_processors && length >= LONG_ROW && !gs_has_across(l)) {
    g->team = g->threads = 512;
    const uint64_t parts = gs_divide_up(length, 8u * g->threads * g->vector),
                   most = 2 * n_processors / gs_at_least_one(n);
    g->splits = (uint32_t)gs_at_least_one(parts < most ? parts : most);
  } else if (!choose_staged(l, n, m)) {
    choose_team(l, n, n_processors);
  }
  AOT_ASSERT(g->team && g->threads % g->team == 0 && g->threads <= 1024);
  AOT_ASSERT(g->threads % WARP == 0 && g->splits > 0);
  g->blocks = 0;
}

void gs_hold(lp_loop_t *l) {
  lp_gpu_t *g = &l->gpu;
  const int is_in_shared = g->stages && !across_bytes(l);
  if (g->splits == 1 && !is_in_shared && holds(l, g->team)) {
    g->chunks = (uint32_t)gs_at_least_one(gs_divide_up((uint64_t)lp_length(l), (uint64_t)g->team * g->vector));
    AOT_ASSERT(g->chunks <= MOST_CHUNKS);
    return;
  }
  g->chunks = 0;
  drop_kept(l);
}

int gs_fit_blocks(lp_loop_t *l, uint64_t rows, const lp_gpu_machine_t *m) {
  lp_gpu_t *g = &l->gpu;
  const uint64_t teams = g->threads / g->team, shared = lp_gpu_staged_at(l, l->n_loads) * g->stages * teams;
  if (g->stages && (!shared || shared + SHARED_BESIDE > m->block_shared || gs_has_scan(l) || g->splits > 1)) return 0;
  if (g->bulk && (!g->stages || g->team <= WARP || m->arch < OLDEST_WITH_BULK || !may_be_bulk(l))) return 0;
  g->shared = (uint32_t)shared;
  AOT_ASSERT(shared <= UINT32_MAX);
  g->residents = g->stages ? resident_blocks(l, m) : 0;
  if (!g->blocks) g->blocks = m->n_processors * resident_blocks(l, m);
  if (g->blocks > gs_divide_up(rows, teams)) g->blocks = (uint32_t)gs_at_least_one(gs_divide_up(rows, teams));
  return 1;
}

int lp_gpu_goes_on(const lp_loop_t *l) { return l->gpu.kind == LP_GPU_ROWS && (l->gpu.stages || across_bytes(l)); }

int lp_gpu_joins_teams(const lp_loop_t *l) {
  const lp_gpu_t *g = &l->gpu;
  const uint64_t elements = (uint64_t)(g->threads / g->team) * (uint64_t)lp_length(l);
  return g->threads > g->team && g->chunks && elements * sizeof(double) <= g->shared;
}
