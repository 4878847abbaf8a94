/* Rows: a row a team, in as many passes as its loop has, by registers or by stages of shared memory. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <aot/inline.h>

/* The vectors of a row that are this thread's: c of them where it holds them, else as they come. */
static void print_chunks(const cuda_printer_t *p) {
  const lp_gpu_t *g = p->g;
  const long long step = (long long)g->team * g->vector;
  if (p->pass.has_scan) { /* all threads take part to the last */
    lp_print(p->out, "for (%s top = 0; top < length; top += %u) {\n{\n", p->index, g->team);
    lp_print(p->out, "const int is_in = top + lane < length;\nconst %s i = is_in ? top + lane : length - 1;\n",
             p->index);
    return;
  }
  if (g->chunks > 1) {
    lp_print(p->out, "%sfor (int c = 0; c < %u; c++) {\n", CUDA_UNROLL, g->chunks);
    lp_print(p->out, "const %s i = (c * %u + lane) * %u;\n", p->index, g->team, g->vector);
  } else if (g->chunks == 1) {
    lp_print(p->out, "{\nconst %s i = lane * %u;\n", p->index, g->vector);
  } else if (g->splits > 1) {
    lp_print(p->out, "#pragma unroll 4\nfor (%s i = (part * %u + lane) * %u; i < length; i += %lld) {\n", p->index,
             g->team, g->vector, step * g->splits);
  } else {
    lp_print(p->out, "#pragma unroll 4\nfor (%s i = lane * %u; i < length; i += %lld) {\n", p->index, g->vector, step);
  }
  if (g->chunks && lp_length(p->l) % step) lp_print(p->out, "if (i < length) ");
  lp_print(p->out, "{\n");
  if (cuda_has_tail(p))
    lp_print(p->out, "const int n = length - i < %u ? (int)(length - i) : %u;\n", g->vector, g->vector);
}

/* Whole vectors in turn, and then the one that has fewer elements, by the thread whose turn it is: the others are
 * spared the question. Each has a text of its own, so only where vectors are in a loop. */
static void print_vectors(const cuda_printer_t *p, void (*print)(const cuda_printer_t *)) {
  const lp_gpu_t *g = p->g;
  cuda_printer_t whole = *p;
  if (!cuda_has_tail(p) || g->chunks) {
    print_chunks(p);
    print(p);
    lp_print(p->out, "}\n}\n");
    return;
  }
  whole.is_whole = 1;
  lp_print(p->out, "{\n%s i = ", p->index);
  if (g->splits > 1) lp_print(p->out, "(part * %u + lane)", g->team);
  else lp_print(p->out, "lane");
  lp_print(p->out, " * %u;\n#pragma unroll 4\nfor (; i + %u <= length; i += %lld) {\n", g->vector, g->vector,
           (long long)g->team * g->vector * g->splits);
  print(&whole);
  lp_print(p->out, "}\nif (i < length) {\nconst int n = (int)(length - i);\n");
  print(p);
  lp_print(p->out, "}\n}\n");
}

/* The last vector of a row may have fewer elements. */
static void print_elements_there(const cuda_printer_t *p) {
  cuda_print_element_loop(p);
  if (cuda_has_tail(p)) lp_print(p->out, "if (j < n) ");
}

/* Loads that are held and come first in this pass. */
static void print_held(const cuda_printer_t *p, uint8_t *is_there) {
  int n = 0;
  for (uint32_t k = 0; k < p->l->n_loads; k++) {
    if (!p->pass.loads[k] || is_there[k] || !lp_is_held(p->l, k)) continue;
    cuda_print_array(p, k, 1);
    n++;
  }
  if (!n) return;
  print_chunks(p);
  for (uint32_t k = 0; k < p->l->n_loads; k++) {
    if (!p->pass.loads[k] || is_there[k] || !lp_is_held(p->l, k)) continue;
    cuda_print_take(p, k);
    is_there[k] = 1;
  }
  lp_print(p->out, "}\n}\n");
}

static void print_row_pass(cuda_printer_t *p, uint32_t number, uint8_t *is_there) {
  lp_find_pass(p->l, number, &p->pass);
  cuda_print_row_insts(p, number);
  print_held(p, is_there);
  cuda_print_accumulators(p);
  print_vectors(p, cuda_print_vector);
  cuda_print_joined(p, p->g->team);
}

/* Sums across rows: of each element that the thread has of a row, or of values of rows. */
static void print_across(const cuda_printer_t *p) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    const uint32_t n = p->g->chunks * p->g->vector;
    if (inst->reduce != LP_ACROSS) continue;
    if (inst->of_row) {
      lp_print(p->out, "%s a%u = 0;\n", lp_c_type(lp_gpu_lane(inst)), k);
    } else if (!n) {
      print_chunks(p);
      print_elements_there(p);
      cuda_print_across_slot(p, k);
      lp_print(p->out, " = 0;\n}\n}\n");
    } else
      lp_print(p->out, "%s a%u[%u];\n%sfor (int j = 0; j < %u; j++) a%u[j] = 0;\n", lp_c_type(lp_gpu_lane(inst)), k, n,
               CUDA_UNROLL, n, k);
  }
}

/* The teams of a block first add theirs in shared memory, where no rows are any more. */
static void print_joined_teams(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  const uint32_t teams = p->g->threads / p->g->team;
  const long long length = (long long)lp_length(l);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    const char *type = lp_c_type(lp_gpu_lane(inst));
    if (inst->reduce != LP_ACROSS) continue;
    lp_print(p->out, "{\n%s *const sums = (%s *)shared;\n__syncthreads();\n", type, type);
    if (inst->of_row) {
      lp_print(p->out, "if (lane == 0) sums[threadIdx.x / %u] = a%u;\n", p->g->team, k);
    } else {
      print_chunks(p);
      print_elements_there(p);
      lp_print(p->out, "sums[threadIdx.x / %u * %lld + i%s] = a%u", p->g->team, length, p->g->vector > 1 ? " + j" : "",
               k);
      cuda_print_slot(p, 1, 1);
      lp_print(p->out, ";\n}\n}\n");
    }
    lp_print(p->out, "__syncthreads();\nfor (int i = threadIdx.x; i < %lld; i += %u) {\n%s sum = sums[i];\n",
             inst->of_row ? 1 : length, p->g->threads, type);
    lp_print(p->out, "for (int other = 1; other < %u; other++) sum += sums[other * %lld + i];\n", teams,
             inst->of_row ? 1 : length);
    cuda_print_scratch(p, k);
    lp_print(p->out, "[blockIdx.x * (%s)%lld + i] = sum;\n}\n}\n", p->index, inst->of_row ? 1 : length);
  }
}

/* They go to scratch memory, as part `part`. */
static void print_across_parts(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (l->insts[k].reduce != LP_ACROSS || (!l->insts[k].of_row && !p->g->chunks)) continue;
    if (l->insts[k].of_row) {
      lp_print(p->out, "if (lane == 0) ");
      cuda_print_scratch(p, k);
      lp_print(p->out, "[part] = a%u;\n", k);
      continue;
    }
    print_chunks(p);
    print_elements_there(p);
    cuda_print_scratch(p, k);
    lp_print(p->out, "[part * (%s)%lld + i%s] = a%u", p->index, (long long)lp_length(l), p->g->vector > 1 ? " + j" : "",
             k);
    cuda_print_slot(p, 1, 1);
    lp_print(p->out, ";\n}\n}\n");
  }
}

/* Loads that are held and are the same for all rows. */
static void print_same_for_rows(cuda_printer_t *p, uint8_t *is_there) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const lp_access_t *a = &l->accesses[k];
    int is_own = a->n_indices || a->bounded;
    for (int32_t d = 0; d < lp_row(l); d++) is_own |= a->strides[d] != 0;
    if (is_own || !lp_is_held(l, k)) continue;
    cuda_print_row_pointer(p, k, 0);
    cuda_print_array(p, k, 1);
    print_chunks(p);
    cuda_print_take(p, k);
    lp_print(p->out, "}\n}\n");
    is_there[k] = 1;
  }
}

/* A row to come by its first thread, whole: a barrier counts the bytes. */
static void print_bulk_copies(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  uint64_t sum = 0;
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k)) sum += (uint64_t)l->sizes[l->rank - 1] * aot_dtype_size(l->accesses[k].dtype);
  lp_print(p->out, "if (lane == 0) {\nlp_expect(&full[next_stage], %llu);\n", (unsigned long long)sum);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k))
      lp_print(p->out, "lp_fetch(stage + %llu, q%u, %llu, &full[next_stage]);\n",
               (unsigned long long)lp_gpu_staged_at(l, k), k,
               (unsigned long long)l->sizes[l->rank - 1] * aot_dtype_size(l->accesses[k].dtype));
  lp_print(p->out, "}\n}\n");
}

static void print_copy(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    if (!lp_gpu_is_staged(l, k)) continue;
    const unsigned long long at = (unsigned long long)lp_gpu_staged_at(l, k);
    if (cuda_has_tail(p))
      lp_print(p->out, "if (n < %u)\nfor (int j = 0; j < n; j++) ((%s *)(stage + %llu))[i + j] = q%u[i + j];\nelse ",
               p->g->vector, lp_c_type(l->accesses[k].dtype), at, k);
    lp_print(p->out, "lp_copy(stage + %llu + i * %u, &q%u[i], %llu);\n", at,
             (unsigned)aot_dtype_size(l->accesses[k].dtype), k, (unsigned long long)cuda_vector_bytes(p, k));
  }
}

/* A row to come, by every thread the vectors that it will read. */
static void print_copies(const cuda_printer_t *p) {
  print_vectors(p, print_copy);
  lp_print(p->out, "}\nlp_end_copies();\n");
}

/* Rows through shared memory: a row to come goes into the stage whose row is done; then a team waits for its row. The
 * first rows are ones before the team's first. */
static void print_stages(const cuda_printer_t *p, long long rows) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  const uint32_t teams = g->threads / g->team, step = g->blocks * teams, ahead = (g->stages - 1) * step;
  const unsigned long long bytes = (unsigned long long)lp_gpu_staged_at(l, l->n_loads);
  AOT_ASSERT(bytes * g->stages * teams == g->shared && g->blocks > 0);
  lp_print(p->out, "LP_SHARED(shared);\nchar *const stages = shared");
  if (teams > 1) lp_print(p->out, " + threadIdx.x / %u * %llu", g->team, g->stages * bytes);
  lp_print(p->out, ";\nint next_stage = 0;\n");
  if (g->bulk) {
    lp_print(p->out, "__shared__ uint64_t barriers[%u];\nuint64_t *const full = barriers", g->stages * teams);
    if (teams > 1) lp_print(p->out, " + threadIdx.x / %u * %u", g->team, g->stages);
    lp_print(p->out, ";\nint round = 0;\n");
    lp_print(p->out, "if (lane == 0) for (int k = 0; k < %u; k++) lp_begin_barrier(&full[k]);\n__syncthreads();\n",
             g->stages);
  }
  lp_print(p->out, "for (%s row = part - %u; row < %lld; row += %u) {\n", p->index, ahead, rows, step);
  lp_print(p->out, "if (row + %u < %lld) {\nconst %s next = row + %u;\n", ahead, rows, p->index, ahead);
  cuda_print_outer_indices(p, l->rank - 1, "next");
  lp_print(p->out, "char *const stage = stages + next_stage * %llu;\n", bytes);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k)) cuda_print_row_pointer(p, k, l->rank - 1);
  if (g->bulk) print_bulk_copies(p);
  else print_copies(p);
  if (g->stages > 1) lp_print(p->out, "next_stage = next_stage == %u ? 0 : next_stage + 1;\n", g->stages - 1);
  if (g->stages > 1) lp_print(p->out, "if (row < part) continue;\n");
  if (g->bulk) lp_print(p->out, "lp_await(&full[next_stage], round);\n");
  else lp_print(p->out, "LP_WAIT_COPIES(%u);\n", g->stages - 1);
  lp_print(p->out, "const char *const stage = stages + next_stage * %llu;\n", bytes);
}

/* Who takes which row: teams that continue from row to row, parts of a row, or teams with a row each. */
static void print_rows_begin(cuda_printer_t *p, uint8_t *is_there) {
  const lp_gpu_t *g = p->g;
  const uint32_t teams = g->threads / g->team;
  const long long rows = (long long)lp_gpu_results(p->l);
  lp_print(p->out, "const %s length = %lld, lane = threadIdx.x", p->index, (long long)lp_length(p->l));
  if (teams > 1) lp_print(p->out, " %% %u", g->team);
  if (cuda_n_teams(p) > 1) lp_print(p->out, ", team = threadIdx.x / %u", g->team);
  if (g->splits > 1) {
    lp_print(p->out, ", row = blockIdx.x / %u, part = blockIdx.x %% %u;\n", g->splits, g->splits);
  } else {
    lp_print(p->out, ", %s = (%s)blockIdx.x", lp_gpu_goes_on(p->l) ? "part" : "row", p->index);
    if (teams > 1) lp_print(p->out, " * %u + threadIdx.x / %u", teams, g->team);
    if (g->parts && !lp_gpu_goes_on(p->l)) lp_print(p->out, ", part = row");
    lp_print(p->out, ";\n");
  }
  print_across(p);
  if (lp_gpu_goes_on(p->l)) print_same_for_rows(p, is_there);
  if (g->stages) print_stages(p, rows);
  else if (lp_gpu_goes_on(p->l))
    lp_print(p->out, "for (%s row = part; row < %lld; row += %u) {\n", p->index, rows, g->blocks * teams);
  else lp_print(p->out, "if (row < %lld) {\n", rows);
}

void cuda_print_rows(cuda_printer_t *p, const char *name) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  uint8_t is_there[LP_INSTS * LP_ARGS] = {0};
  AOT_ASSERT(!l->n_kept || g->chunks > 0); /* only registers keep values, and those hold chunks */
  cuda_print_head(p, name, "");
  print_rows_begin(p, is_there);
  cuda_print_pointers(p, lp_row(l), "row");
  cuda_print_constants(p);
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].keep) lp_print(p->out, "%s k%u[%u];\n", lp_value_type(l->insts[k].dtype), k, g->chunks * g->vector);
  for (uint32_t pass = 0; pass < l->n_passes; pass++) print_row_pass(p, pass, is_there);
  if (g->splits == 1) {
    cuda_print_row_insts(p, l->n_passes);
    cuda_print_row_stores(p);
  }
  if (g->bulk) lp_print(p->out, "round ^= next_stage == %u;\n", g->stages - 1);
  if (lp_gpu_goes_on(l) && cuda_n_teams(p) > 1) lp_print(p->out, "lp_sync(team + 1, %u);\n", g->team);
  else if (lp_gpu_goes_on(l) && g->team > 32) lp_print(p->out, "__syncthreads();\n"); /* shared memory is used again */
  if (lp_gpu_goes_on(p->l)) lp_print(p->out, "}\n");
  if (g->parts && lp_gpu_joins_teams(l)) print_joined_teams(p);
  else if (g->parts) print_across_parts(p);
  cuda_print_wrong(p);
  lp_print(p->out, lp_gpu_goes_on(p->l) ? "}\n" : "}\n}\n");
}
