/* The second kernel: it joins what blocks have left in scratch memory, parts of rows and of columns, and sums across
 * rows; and stores what follows from it. */
#include "cuda_printer.h"

#include <aot/assert.h>

/* A thread takes every so many parts of result `at`. */
static void print_parts(const cuda_printer_t *p, const char *first, uint32_t step) {
  AOT_ASSERT(p->g->splits > 1 && p->g->vector == 1);
  cuda_print_accumulators(p);
  lp_print(p->out, "for (int part = %s; part < %u; part += %u) {\n", first, p->g->splits, step);
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    if (p->l->insts[k].reduce == LP_EACH) continue;
    lp_print(p->out, "a%u%s = %s(a%u%s, ", k, p->l->columns ? "[0]" : "", lp_join_name(p->l->insts[k].reduce), k,
             p->l->columns ? "[0]" : "");
    cuda_print_partial(p, k);
    lp_print(p->out, " + at]);\n");
  }
  lp_print(p->out, "}\n");
}

/* Sums across rows: of each 32 columns a block, of those of values of rows one. Parts are added in double. */
static void print_across_end(cuda_printer_t *p, const char *name) {
  enum { SIDE = 32, DOWN = LP_GPU_END_THREADS / SIDE };
  const lp_loop_t *l = p->l;
  const long long length = (long long)lp_length(l);
  lp_gpu_t single = l->gpu;
  uint32_t block = 0;
  single.threads = LP_GPU_END_THREADS;
  p->g = &single;
  cuda_print_head(p, name, "_end");
  for (uint32_t s = l->n_loads; s < cuda_n_accesses(l); s++) {
    const uint32_t k = l->accesses[s].inst;
    const lp_inst_t *inst = &l->insts[k];
    const char *wide = lp_is_float(inst->compute) ? "double" : "int64_t";
    if (inst->reduce != LP_ACROSS) continue;
    const uint32_t first = block;
    block += inst->of_row ? 1 : (uint32_t)((length + SIDE - 1) / SIDE);
    lp_print(p->out, "if (blockIdx.x >= %u && blockIdx.x < %u) {\n", first, block);
    lp_print(p->out, "%s *q%u = (%s *)LP_AT(%u);\n%s a = 0;\n", lp_c_type(l->accesses[s].dtype), s,
             lp_c_type(l->accesses[s].dtype), s, wide);
    if (inst->of_row) {
      lp_print(p->out, "for (int part = threadIdx.x; part < %u; part += %d) a += ", p->g->parts, LP_GPU_END_THREADS);
      cuda_print_scratch(p, k);
      lp_print(p->out, "[part];\n__shared__ %s s%u[32];\n", wide, k);
      lp_print_value(p->out, l, k);
      lp_print(p->out, "lp_block_sum_%s(a, s%u, %d, 0));\nif (threadIdx.x == 0) q%u[0] = ",
               lp_is_float(inst->compute) ? "f64" : "i64", k, LP_GPU_END_THREADS / 32, s);
    } else {
      lp_print(p->out, "const int lane = threadIdx.x %% %d, down = threadIdx.x / %d;\n", SIDE, SIDE);
      lp_print(p->out, "const %s i = (%s)(blockIdx.x - %u) * %d + lane;\n", p->index, p->index, first, SIDE);
      lp_print(p->out, "if (i < %lld)\n#pragma unroll 8\nfor (int part = down; part < %u; part += %d) a += ", length,
               p->g->parts, DOWN);
      cuda_print_scratch(p, k);
      lp_print(p->out, "[part * (%s)%lld + i];\n__shared__ %s s%u[%d];\ns%u[threadIdx.x] = a;\n__syncthreads();\n",
               p->index, length, wide, k, LP_GPU_END_THREADS, k);
      lp_print(p->out, "for (int half = %d; half >= %d; half /= 2) {\n", LP_GPU_END_THREADS / 2, SIDE);
      lp_print(p->out, "if (threadIdx.x < half) s%u[threadIdx.x] += s%u[threadIdx.x + half];\n__syncthreads();\n}\n", k,
               k);
      lp_print_value(p->out, l, k);
      lp_print(p->out, "s%u[lane]);\nif (down == 0 && i < %lld) q%u[", k, length, s);
      cuda_print_times(p->out, "i", cuda_inner_stride(l, s));
      lp_print(p->out, "] = ");
    }
    lp_print_stored(p->out, l, s);
    lp_print(p->out, ";\n}\n");
  }
  AOT_ASSERT(block == lp_gpu_end_blocks(l)); /* as many as are launched */
  lp_print(p->out, "}\n");
}

static void print_parts_end(cuda_printer_t *p, const char *name) {
  enum { SIDE = 32, DOWN = LP_GPU_END_THREADS / SIDE };
  const lp_loop_t *l = p->l;
  const long long across = l->columns ? (long long)l->sizes[lp_inner(l)] : 1, results = (long long)lp_gpu_results(l);
  lp_gpu_t single = l->gpu;
  single.threads = LP_GPU_END_THREADS;
  single.vector = 1;
  p->g = &single;
  lp_find_pass(l, 0, &p->pass);
  cuda_print_head(p, name, "_end");
  lp_print(p->out, "const %s length = %lld;\n(void)length;\n", p->index, (long long)lp_length(l));
  if (l->columns) {
    lp_print(p->out, "const %s lane = threadIdx.x %% %d, down = threadIdx.x / %d, at = blockIdx.x * %d + lane;\n",
             p->index, SIDE, SIDE, SIDE);
    lp_print(p->out, "const %s outer = at / %lld, i = at %% %lld;\n", p->index, across, across);
    cuda_print_pointers(p, lp_inner(l), "outer");
    lp_print(p->out, "const int first = at < %lld ? (int)down : %u;\n", results, single.splits);
    print_parts(p, "first", DOWN);
    cuda_print_joined_columns(p, SIDE, DOWN);
    lp_print(p->out, "if (down == 0 && at < %lld) {\n", results);
    cuda_print_constants(p);
    cuda_print_column_values(p);
    lp_print(p->out, "}\n}\n");
    return;
  }
  lp_print(p->out, "const %s lane = threadIdx.x, row = blockIdx.x, at = row;\n", p->index);
  cuda_print_pointers(p, lp_row(l), "row");
  cuda_print_constants(p);
  cuda_print_row_insts(p, 0);
  print_parts(p, "lane", LP_GPU_END_THREADS);
  single.splits = 1; /* what print_joined joins is whole */
  single.team = LP_GPU_END_THREADS;
  cuda_print_joined(p, LP_GPU_END_THREADS);
  cuda_print_row_insts(p, l->n_passes);
  cuda_print_row_stores(p);
  lp_print(p->out, "}\n");
}

void cuda_print_end(cuda_printer_t *p, const char *name) {
  if (p->l->gpu.parts) print_across_end(p, name);
  else print_parts_end(p, name);
}
