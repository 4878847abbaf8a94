/* Loop IR to CUDA C without headers, by the schedule in loop.gpu. Sizes and strides are constants of the text, but for
 * the sizes of flat points: those come with the pointers, so that tensors of all sizes share a text, and a launch.
 *
 *     points                          rows                                   columns
 *     if (i < elements)               a row a team                           a tile of columns and every so many rows
 *       loads of its vector             loads that are held                    rows: loads of some | their elements
 *       its elements, j                 every pass: its vectors, c, and        threads' sums joined in shared memory
 *       stores                            their elements, j | reductions       the columns' values, and stores
 *                                       the row's values, and stores
 *
 * Variables: x loads, v instructions, as in C; w loads and y stores of a vector, k values stored between passes, a what
 * a thread has reduced, q pointers to a row's first element, e the number of its first draw. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <stdio.h>

/* The block's tensor: the last whose first block is not after it, found by halves. */
static void print_tensor(const cuda_printer_t *p) {
  const uint32_t first = lp_gpu_shared_words(p->l), words = lp_gpu_row_words(p->l), n = p->g->tensors;
  uint32_t half = 1;
  AOT_ASSERT(first + n * words <= LP_GPU_MOST_POINTERS);
  while (2 * half < n) half *= 2;
  lp_print(p->out, "int words = %u;\n", first);
  if (n > 1)
    lp_print(p->out,
             "for (int step = %u; step; step /= 2)\nif (words + step * %u < %u && "
             "(int64_t)LP_AT(words + step * %u + %d) <= blockIdx.x) words += step * %u;\n",
             half, words, first + n * words, words, LP_GPU_FIRST_BLOCK, words);
  lp_print(p->out, "const %s size = (%s)(int64_t)LP_AT(words + %d);\n", p->index, p->index, LP_GPU_SIZE);
  lp_print(p->out, "const %s block = (%s)(blockIdx.x - (int64_t)LP_AT(words + %d));\n", p->index, p->index,
           LP_GPU_FIRST_BLOCK);
}

static void print_points(cuda_printer_t *p, const char *name) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  const char *at = l->rank > 1 ? "at" : "i";
  const long long row = (long long)cuda_size(l, l->rank - 1);
  long long elements = 1;
  char size[24] = "size", block[24] = "block";
  for (int32_t d = 0; d < l->rank; d++) elements *= (long long)l->sizes[d];
  lp_find_pass(l, 0, &p->pass);
  cuda_print_head(p, name, "");
  if (g->tensors) {
    print_tensor(p);
  } else {
    snprintf(size, sizeof size, "%lld", elements);
    snprintf(block, sizeof block, "(%s)blockIdx.x", p->index);
  }
  lp_print(p->out, "const %s %s = (%s * %u + threadIdx.x) * %u;\n", p->index, at, block, g->threads, g->vector);
  lp_print(p->out, "if (%s < %s) {\n", at, size);
  if (l->rank > 1) lp_print(p->out, "const %s row = at / %lld, i = at %% %lld;\n", p->index, row, row);
  if (cuda_has_tail(p))
    lp_print(p->out, "const int n = %s - i < %u ? (int)(%s - i) : %u;\n", size, g->vector, size, g->vector);
  cuda_print_pointers(p, l->rank - 1, "row");
  cuda_print_constants(p);
  cuda_print_row_insts(p, 0);
  cuda_print_vector(p);
  cuda_print_wrong(p);
  lp_print(p->out, "}\n}\n");
}

void lp_gen_cuda(const lp_loop_t *l, const char *name, lp_text_t *out) {
  cuda_printer_t p = {.out = out, .l = l, .g = &l->gpu, .index = l->gpu.wide ? "int64_t" : "int"};
  AOT_ASSERT(l->gpu.kind && l->gpu.vector && l->gpu.team && l->gpu.threads % l->gpu.team == 0); /* scheduled */
  switch (l->gpu.kind) {
    case LP_GPU_COLUMNS: cuda_print_columns(&p, name); break;
    case LP_GPU_ROWS: cuda_print_rows(&p, name); break;
    case LP_GPU_PLACES: cuda_print_places(&p, name); return;
    default: print_points(&p, name);
  }
  if (lp_gpu_has_end(l)) cuda_print_end(&p, name);
}
