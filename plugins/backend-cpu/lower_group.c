/* A group's loop as a generated function of C, called by parts on threads. Rows that the loop keeps are in the arena,
 * a set for each thread. Loops too short for threads are joined where they may be (kit/lowering/horizontal_fusion.c):
 * threads then divide the elements of all. */
#include "group_across.h"
#include "target.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { WORTH_A_THREAD = 16384 /* elements */ };

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
  /* of accesses, row buffers, and what reports a wrong index; by part if there is more than accesses */
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
  int64_t n_inner; /* elements of an index of dimension 0 */
  int64_t grain;   /* indices that are worth a thread */
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

static char **set_pointers(const lw_frame_t *f, const loop_step_t *p, int32_t part) {
  char **pointers = pointers_of(p, part);
  for (uint32_t k = 0; k < p->n; k++) /* a draw's pointer stays */
    if (p->refs[k].storage != LW_NONE) pointers[k] = lw_at(f, p->refs[k]);
  return pointers;
}

static aot_status_t run_loop(const lw_frame_t *f, void *payload) {
  loop_step_t *p = payload;
  char *kept = p->n_kept ? lw_at(f, p->kept) : NULL;
  for (int32_t part = 0; part < p->n_parts; part++) {
    char **pointers = set_pointers(f, p, part);
    for (uint32_t k = 0; k < p->n_kept; k++, kept += p->kept_nbytes) pointers[p->n + k] = kept;
    for (uint32_t k = 0; k < p->n_across; k++) pointers[p->across[k].store] = bc_across_part(f, &p->across[k], part);
    if (p->wrong) p->wrong[part] = 0;
  }
  const int32_t n_run = bc_parallel(f->workers, p->sizes[0], p->grain, run_part, p);
  for (uint32_t k = 0; k < p->n_across; k++) bc_across_join(f, &p->across[k], n_run);
  return p->wrong ? check_indices(f, p) : AOT_OK;
}

/* ---- joined loops ---- */

typedef struct joined_step {
  loop_step_t **loops;
  int64_t *first; /* by loop: the number of its first element among those of all; and the number of all */
  uint32_t n;
} joined_step_t;

static int64_t n_elements(const loop_step_t *p) { return p->sizes[0] * p->n_inner; }

/* The index of dimension 0 that begins at this element, or after it. */
static int64_t index_at(const joined_step_t *p, uint32_t loop, int64_t element) {
  const loop_step_t *l = p->loops[loop];
  if (element <= p->first[loop]) return 0;
  if (element >= p->first[loop + 1]) return l->sizes[0];
  return (element - p->first[loop] + l->n_inner - 1) / l->n_inner;
}

static void run_joined_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const joined_step_t *p = payload;
  uint32_t low = 0, high = p->n; /* the first loop that ends after `begin` */
  (void)part;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (p->first[middle + 1] <= begin) low = middle + 1;
    else high = middle;
  }
  for (; low < p->n && p->first[low] < end; low++) {
    const int64_t from = index_at(p, low, begin), to = index_at(p, low, end);
    if (from < to) run_part(p->loops[low], 0, from, to);
  }
}

static aot_status_t run_loops(const lw_frame_t *f, void *payload) {
  joined_step_t *p = payload;
  for (uint32_t k = 0; k < p->n; k++) set_pointers(f, p->loops[k], 0);
  bc_parallel(f->workers, p->first[p->n], WORTH_A_THREAD, run_joined_part, p);
  return AOT_OK;
}

aot_status_t bc_join_loops(lw_build_t *b, const lw_step_t *const *steps, uint32_t n, lw_step_t *out) {
  joined_step_t *p = lw_pool_alloc(b->pool, sizeof *p);
  if (p) p->loops = lw_pool_alloc(b->pool, n * sizeof *p->loops);
  if (p) p->first = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *p->first);
  if (!p || !p->loops || !p->first) return lw_no_memory(b->error, "for a group");
  p->n = n;
  for (uint32_t k = 0; k < n; k++) {
    p->loops[k] = steps[k]->payload;
    p->first[k + 1] = p->first[k] + n_elements(p->loops[k]);
  }
  out->run = run_loops;
  out->kernel = "run_loops";
  out->payload = p;
  return AOT_OK;
}

/* ---- from a group ---- */

/* The function for this loop: its name is the hash of its text. NULL: there is none. */
static aot_status_t find_function(lw_build_t *b, const lp_loop_t *loop, const lw_loop_fn **out, uint64_t *out_hash) {
  lp_text_t body = {0}, text = {0};
  char name[32];
  lp_gen_c(loop, "F", &body);
  if (!body.failed) {
    *out_hash = XXH3_64bits(body.data, (size_t)body.size);
    snprintf(name, sizeof name, "lp_%016llx", (unsigned long long)*out_hash);
    *out = b->machine->find(b->machine->self, name);
    if (!*out) lp_gen_c(loop, name, &text);
  }
  aot_status_t status = body.failed || text.failed ? lw_no_memory(b->error, "for a group") : AOT_OK;
  if (status == AOT_OK && !*out && b->machine->add(b->machine->self, name, text.data, text.size, out) != AOT_OK)
    status = lw_no_memory(b->error, "for a group");
  lp_text_deinit(&body);
  lp_text_deinit(&text);
  return status;
}

static void add_lookups(lw_build_t *b, const lw_group_t *g, loop_step_t *p) {
  for (uint32_t k = 0; k < g->loop.n_loads + g->loop.n_stores; k++)
    for (uint32_t i = 0; i < g->accesses[k].n_indices; i++) {
      const lp_index_t *x = &g->accesses[k].indices[i];
      p->lookups[p->n_lookups++] =
          (lookup_t){lw_use_read(b, &g->tensors[x->load]), g->tensors[x->load], x->size, x->wraps, g->nodes[k]};
    }
}

/* Memory for the sums that parts leave: before the step that uses it. */
static aot_status_t add_across(lw_build_t *b, const lw_group_t *g, uint32_t n_parts, bc_across_t *out) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++)
    if (lw_is_across(g, s)) AOT_TRY(bc_across_add(b, s, n_parts, &g->tensors[s], out++));
  return AOT_OK;
}

/* Threads have work for all of them, or there is one; and nothing is stored by part. */
static int is_alone(const lw_build_t *b, const loop_step_t *p, uint32_t n_parts) {
  return n_parts > 1 || p->wrong || b->machine->n_threads < 2 ||
         n_elements(p) >= b->machine->n_threads * WORTH_A_THREAD;
}

static aot_status_t add_loop(lw_build_t *b, const lw_group_t *g, const lw_loop_fn *function, uint64_t hash) {
  const int has_indices = lp_has_indices(&g->loop);
  uint32_t n = g->loop.n_loads + g->loop.n_stores, rank = (uint32_t)g->loop.rank;
  const uint32_t n_more = g->loop.n_kept + (uint32_t)has_indices;
  uint32_t n_across = 0;
  for (uint32_t s = g->loop.n_loads; s < n; s++) n_across += (uint32_t)lw_is_across(g, s);
  const uint32_t n_parts = n_more || n_across ? (uint32_t)b->machine->n_threads : 1;
  bc_across_t *across = lw_pool_alloc(b->pool, (n_across + 1) * sizeof *across);
  if (!across) return lw_no_memory(b->error, "for a group");
  lw_tensor_t kept = {.storage = LW_NONE};
  uint64_t nbytes = 0;
  loop_step_t *p;
  for (uint32_t k = 1; k <= g->loop.n_kept; k++) {
    const uint64_t size = lp_keep_size(&g->loop, k);
    if (size > nbytes) nbytes = size;
  }
  nbytes = (nbytes * (uint64_t)lp_length(&g->loop) + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN;
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
  if (!p->refs || !p->pointers || !p->numbers || !p->lookups || !wrong) return lw_no_memory(b->error, "for a group");
  if (has_indices) p->wrong = wrong;
  add_lookups(b, g, p);
  lp_numbers(&g->loop, p->numbers);
  memcpy(p->sizes, g->loop.sizes, sizeof p->sizes);
  p->n_inner = 1;
  for (uint32_t d = 1; d < rank; d++) p->n_inner *= p->sizes[d];
  p->grain = (WORTH_A_THREAD + p->n_inner - 1) / p->n_inner;
  b->out->steps[b->out->n_steps - 1].joins = is_alone(b, p, n_parts) ? 0 : hash;
  b->out->steps[b->out->n_steps - 1].most_joined = UINT32_MAX;
  for (uint32_t k = 0; k < n; k++) {
    p->refs[k] = lw_use_access(b, g, k);
    for (uint32_t part = 0; part < n_parts; part++) pointers_of(p, (int32_t)part)[k] = (char *)g->draws[k];
  }
  for (uint32_t part = 0; has_indices && part < n_parts; part++)
    pointers_of(p, (int32_t)part)[n + g->loop.n_kept] = (char *)&wrong[part];
  lw_count_loop(b);
  return AOT_OK;
}

aot_status_t bc_lower_loop_step(lw_build_t *b, lw_group_t *g) {
  const lw_loop_fn *function = NULL;
  uint64_t hash = 0;
  AOT_TRY(find_function(b, &g->loop, &function, &hash));
  if (!function) return LW_DECLINED;
  AOT_TRY(lw_store_results(b, g));
  return add_loop(b, g, function, hash);
}
