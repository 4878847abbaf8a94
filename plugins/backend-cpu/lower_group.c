/* A group's loop as a generated function of C, called by parts on threads. Rows that the loop keeps lie in the arena,
 * a set for each thread. */
#include "group_across.h"
#include "target.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { WORTH_A_THREAD = 16384 /* elements */ };

static aot_status_t no_memory(lw_build_t *b) {
  return lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for a group");
}

/* An index tensor that a loop looks its places up in. */
typedef struct lookup {
  lw_ref_t at;
  lw_tensor_t index;
  int64_t size;
  int32_t wraps;
  uint32_t node; /* id */
} lookup_t;

typedef struct loop_step {
  const lw_loop_fn *function; /* where it is when the schedule runs */
  lw_ref_t *refs;
  /* of accesses, row buffers, and what tells of a wrong index; by part if there is more than accesses */
  char **pointers;
  int64_t *numbers;
  uint32_t n, n_kept;
  int32_t n_parts;     /* that have pointers of their own */
  lw_ref_t kept;       /* row buffers, by part */
  int64_t kept_nbytes; /* of one */
  lookup_t *lookups;
  uint32_t n_lookups;
  int64_t *wrong; /* by part; NULL: no lookups */
  bc_across_t *across;
  uint32_t n_across;
  int64_t sizes[AOT_MAX_RANK];
  int64_t grain; /* indices of dimension 0 that are worth a thread */
} loop_step_t;

static char **pointers_of(const loop_step_t *p, int32_t part) {
  return p->n_parts > 1 ? p->pointers + (uint32_t)part * (p->n + p->n_kept + (p->wrong != NULL)) : p->pointers;
}

static void run_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const loop_step_t *p = payload;
  (*p->function)(pointers_of(p, part), p->sizes, p->numbers, begin, end);
}

/* Where the first index is that is out of range. */
static aot_status_t tell_wrong_index(const lw_frame_t *f, const lookup_t *l) {
  const char *at = lw_at(f, l->at);
  const int64_t n = lw_numel(&l->index);
  for (int64_t e = 0; e < n; e++) {
    const int64_t place = lw_place(&l->index, e);
    int64_t index;
    if (l->index.dtype == AOT_I64) index = ((const int64_t *)(const void *)at)[place];
    else index = ((const int32_t *)(const void *)at)[place];
    if (index < l->size && index >= (l->wraps ? -l->size : 0)) continue;
    f->error->node = l->node;
    return lw_fail(f->error, AOT_E_RANGE, "bad-index",
                   "index %lld at position %lld is out of range for a dimension of size %lld", (long long)index,
                   (long long)e, (long long)l->size);
  }
  return AOT_OK;
}

static aot_status_t check_indices(const lw_frame_t *f, const loop_step_t *p) {
  int64_t wrong = 0;
  for (int32_t part = 0; part < p->n_parts; part++) wrong |= p->wrong[part];
  for (uint32_t k = 0; wrong && k < p->n_lookups; k++) AOT_TRY(tell_wrong_index(f, &p->lookups[k]));
  return AOT_OK;
}

static aot_status_t run_loop(const lw_frame_t *f, void *payload) {
  loop_step_t *p = payload;
  char *kept = p->n_kept ? lw_at(f, p->kept) : NULL;
  for (int32_t part = 0; part < p->n_parts; part++) {
    char **pointers = pointers_of(p, part);
    for (uint32_t k = 0; k < p->n; k++) /* a draw's pointer stays */
      if (p->refs[k].storage != LW_NONE) pointers[k] = lw_at(f, p->refs[k]);
    for (uint32_t k = 0; k < p->n_kept; k++, kept += p->kept_nbytes) pointers[p->n + k] = kept;
    for (uint32_t k = 0; k < p->n_across; k++) pointers[p->across[k].store] = bc_across_part(f, &p->across[k], part);
    if (p->wrong) p->wrong[part] = 0;
  }
  const int32_t n_run = bc_parallel(f->workers, p->sizes[0], p->grain, run_part, p);
  for (uint32_t k = 0; k < p->n_across; k++) bc_across_join(f, &p->across[k], n_run);
  return p->wrong ? check_indices(f, p) : AOT_OK;
}

/* The function for this loop: its name is the hash of its text. NULL: there is none. */
static aot_status_t find_function(lw_build_t *b, const lp_loop_t *loop, const lw_loop_fn **out) {
  lp_text_t body = {0}, text = {0};
  char name[32];
  lp_gen_c(loop, "F", &body);
  if (!body.failed) {
    snprintf(name, sizeof name, "lp_%016llx", (unsigned long long)XXH3_64bits(body.data, (size_t)body.size));
    *out = b->machine->find(b->machine->self, name);
    if (!*out) lp_gen_c(loop, name, &text);
  }
  aot_status_t status = body.failed || text.failed ? no_memory(b) : AOT_OK;
  if (status == AOT_OK && !*out && b->machine->add(b->machine->self, name, text.data, text.size, out) != AOT_OK)
    status = no_memory(b);
  lp_text_deinit(&body);
  lp_text_deinit(&text);
  return status;
}

static void add_lookups(lw_build_t *b, const lw_group_t *g, loop_step_t *p) {
  for (uint32_t k = 0; k < g->loop.n_loads + g->loop.n_stores; k++)
    for (uint32_t i = 0; i < g->accesses[k].n_indices; i++) {
      const lp_index_t *x = &g->accesses[k].indices[i];
      p->lookups[p->n_lookups++] =
          (lookup_t){lw_use(b, &g->tensors[x->load]), g->tensors[x->load], x->size, x->wraps, g->nodes[k]};
    }
}

/* Memory for the sums that parts leave: before the step that uses it. */
static aot_status_t add_across(lw_build_t *b, const lw_group_t *g, uint32_t n_parts, bc_across_t *out) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++)
    if (lw_is_across(g, s)) AOT_TRY(bc_across_add(b, s, n_parts, &g->tensors[s], out++));
  return AOT_OK;
}

static aot_status_t add_loop(lw_build_t *b, const lw_group_t *g, const lw_loop_fn *function) {
  const int has_indices = lp_has_indices(&g->loop);
  uint32_t n = g->loop.n_loads + g->loop.n_stores, rank = (uint32_t)g->loop.rank;
  const uint32_t n_more = g->loop.n_kept + (uint32_t)has_indices;
  uint32_t n_across = 0;
  for (uint32_t s = g->loop.n_loads; s < n; s++) n_across += (uint32_t)lw_is_across(g, s);
  const uint32_t n_parts = n_more || n_across ? (uint32_t)b->machine->n_threads : 1;
  bc_across_t *across = lw_pool_alloc(b->pool, (n_across + 1) * sizeof *across);
  if (!across) return no_memory(b);
  int64_t inner = 1;
  lw_tensor_t kept = {.storage = LW_NONE};
  uint64_t nbytes = 0;
  loop_step_t *p;
  for (uint32_t k = 1; k <= g->loop.n_kept; k++) {
    const uint64_t size = lp_keep_size(&g->loop, k);
    if (size > nbytes) nbytes = size;
  }
  nbytes = (nbytes * (uint64_t)g->loop.sizes[rank - 1] + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN;
  if (g->loop.n_kept) AOT_TRY(lw_scratch(b, nbytes * g->loop.n_kept * n_parts, &kept));
  AOT_TRY(add_across(b, g, n_parts, across));
  LW_STEP(b, run_loop, p);
  p->across = across;
  p->n_across = n_across;
  for (uint32_t k = 0; k < n_across; k++) bc_across_use(b, &across[k]);
  p->function = function;
  p->n = n;
  p->n_kept = g->loop.n_kept;
  p->n_parts = (int32_t)n_parts;
  p->kept = lw_use(b, &kept);
  p->kept_nbytes = (int64_t)nbytes;
  p->refs = lw_pool_alloc(b->pool, n * sizeof *p->refs);
  p->pointers = lw_pool_alloc(b->pool, n_parts * (n + n_more) * sizeof *p->pointers);
  p->numbers = lw_pool_alloc(b->pool, lp_n_numbers(&g->loop) * sizeof *p->numbers);
  p->lookups = lw_pool_alloc(b->pool, (n * LP_INDICES + 1) * sizeof *p->lookups);
  int64_t *wrong = lw_pool_alloc(b->pool, n_parts * sizeof *wrong);
  if (!p->refs || !p->pointers || !p->numbers || !p->lookups || !wrong) return no_memory(b);
  if (has_indices) p->wrong = wrong;
  add_lookups(b, g, p);
  lp_numbers(&g->loop, p->numbers);
  memcpy(p->sizes, g->loop.sizes, sizeof p->sizes);
  for (uint32_t d = 1; d < rank; d++) inner *= p->sizes[d];
  p->grain = (WORTH_A_THREAD + inner - 1) / inner;
  for (uint32_t k = 0; k < n; k++) {
    p->refs[k] = lw_use_access(b, g, k);
    for (uint32_t part = 0; part < n_parts; part++) pointers_of(p, (int32_t)part)[k] = (char *)g->draws[k];
  }
  for (uint32_t part = 0; has_indices && part < n_parts; part++)
    pointers_of(p, (int32_t)part)[n + g->loop.n_kept] = (char *)&wrong[part];
  b->out->n_groups++;
  return AOT_OK;
}

aot_status_t bc_lower_loop_step(lw_build_t *b, lw_group_t *g) {
  const lw_loop_fn *function = NULL;
  AOT_TRY(find_function(b, &g->loop, &function));
  if (!function) return LW_DECLINED;
  AOT_TRY(lw_store_results(b, g));
  return add_loop(b, g, function);
}
