/* Columns: a tile of them and every so many rows a block; threads' sums are joined in shared memory. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <aot/inline.h>

void cuda_print_joined_columns(const cuda_printer_t *p, uint32_t across, uint32_t down) {
  const lp_loop_t *l = p->l;
  AOT_ASSERT(down && (down & (down - 1)) == 0); /* half is joined to half */
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce != LP_EACH)
      lp_print(p->out, "__shared__ %s s%u[%u];\n", lp_c_type(lp_gpu_lane(&l->insts[k])), k, across * down);
  cuda_print_element_loop(p);
  lp_print(p->out, "{\n");
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (l->insts[k].reduce == LP_EACH) continue;
    lp_print(p->out, "s%u[down * %u + lane", k, across);
    if (p->g->vector > 1) lp_print(p->out, " * %u + j", p->g->vector);
    lp_print(p->out, "] = a%u", k);
    cuda_print_slot(p, 0, 1);
    lp_print(p->out, ";\n");
  }
  lp_print(p->out, "}\n");
  for (uint32_t half = down / 2; half; half /= 2) {
    lp_print(p->out, "__syncthreads();\nfor (int k = threadIdx.x; k < %u; k += %u) {\n", half * across, p->g->threads);
    for (uint32_t k = 0; k < l->n_insts; k++)
      if (l->insts[k].reduce != LP_EACH)
        lp_print(p->out, "s%u[k] = %s(s%u[k], s%u[k + %u]);\n", k, lp_join_name(l->insts[k].reduce), k, k,
                 half * across);
    lp_print(p->out, "}\n");
  }
  lp_print(p->out, "__syncthreads();\n");
}

void cuda_print_column_values(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_moves(l, k) && !lp_moves(l, k)) cuda_print_load(p, k, 0);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (!l->insts[k].of_row) continue;
    if (l->insts[k].reduce == LP_EACH) {
      lp_print_inst(p->out, l, k);
      continue;
    }
    lp_print_value(p->out, l, k);
    lp_print(p->out, p->g->vector > 1 ? "s%u[lane * %u + j]);\n" : "s%u[lane]);\n", k, p->g->vector);
  }
  for (uint32_t s = l->n_loads; s < cuda_n_accesses(l); s++)
    if (l->accesses[s].of_row) cuda_print_store(p, s);
}

/* A tile's sums into scratch memory. */
static void print_column_parts(const cuda_printer_t *p, long long across) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    if (p->l->insts[k].reduce == LP_EACH) continue;
    cuda_print_partial(p, k);
    lp_print(p->out, " + outer * %lld + i%s] = s%u[", across, p->g->vector > 1 ? " + j" : "", k);
    lp_print(p->out, p->g->vector > 1 ? "lane * %u + j];\n" : "lane];\n", p->g->vector);
  }
}

/* The rows that a thread takes at once: c of them. */
static void print_column_rows(const cuda_printer_t *p, uint32_t step) {
  if (p->g->chunks > 1) {
    lp_print(p->out, "%sfor (int c = 0; c < %u; c++) {\nconst %s row = top + c * %u;\nif (row < length) {\n",
             CUDA_UNROLL, p->g->chunks, p->index, step);
    return;
  }
  lp_print(p->out, "{\nconst %s row = top;\n{\n", p->index);
}

void cuda_print_columns(cuda_printer_t *p, const char *name) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  AOT_ASSERT(l->columns && l->n_passes == 1 && g->chunks > 0 && g->splits > 0);
  const uint32_t width = g->team * g->vector, down = g->threads / g->team, step = down * g->splits;
  const long long across = (long long)l->sizes[lp_inner(l)], tiles = (across + width - 1) / width;
  lp_find_pass(l, 0, &p->pass);
  cuda_print_head(p, name, "");
  lp_print(p->out, "const %s length = %lld, across = %lld;\n", p->index, (long long)lp_length(l), across);
  lp_print(p->out, "const %s lane = threadIdx.x %% %u, down = threadIdx.x / %u, part = blockIdx.x %% %u;\n", p->index,
           g->team, g->team, g->splits);
  lp_print(p->out, "const %s i = (blockIdx.x / %u %% %lld * %u + lane) * %u, outer = blockIdx.x / %lld;\n", p->index,
           g->splits, tiles ? tiles : 1, g->team, g->vector, (tiles ? tiles : 1) * g->splits);
  cuda_print_pointers(p, lp_inner(l), "outer");
  cuda_print_constants(p);
  cuda_print_accumulators(p);
  lp_print(p->out, "if (i < across)\nfor (%s top = part * %u + down; top < length; top += %llu) {\n", p->index, down,
           (unsigned long long)step * g->chunks);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (cuda_has_array(p, k)) cuda_print_array(p, k, 1);
  print_column_rows(p, step);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (cuda_has_array(p, k)) cuda_print_take(p, k);
  lp_print(p->out, "}\n}\n");
  print_column_rows(p, step);
  cuda_print_vector(p);
  lp_print(p->out, "}\n}\n}\n");
  cuda_print_joined_columns(p, width, down);
  lp_print(p->out, "if (down == 0 && i < across) {\n");
  cuda_print_element_loop(p);
  lp_print(p->out, "{\n");
  if (g->splits > 1) print_column_parts(p, across);
  else cuda_print_column_values(p);
  lp_print(p->out, "}\n}\n");
  cuda_print_wrong(p);
  lp_print(p->out, "}\n");
}
