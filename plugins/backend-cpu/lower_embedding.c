/* The gradient of an embedding: rows are added to a contiguous float32 table by int64 indices. */
#include "target.h"
#include "row_kernels.h"

typedef struct embedding_step {
  bc_ref_t table, index, y;
  int64_t n_table, width, rows, padding;
} embedding_step_t;

static aot_status_t run_embedding_backward(const bc_frame_t *f, void *payload) {
  const embedding_step_t *p = payload;
  const int64_t *index = (const int64_t *)(const void *)bc_at(f, p->index);
  const int64_t wrong =
      bc_embedding_backward(bc_f32(f, p->y), index, p->rows, p->n_table, p->width, p->padding, bc_f32(f, p->table));
  if (wrong < 0) return AOT_OK;
  return bc_fail(f->error, AOT_E_RANGE, "bad-index", "index %lld at position %lld is no row of a table of %lld",
                 (long long)index[wrong], (long long)wrong, (long long)p->n_table);
}

/* embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) */
static aot_status_t lower_embedding_backward(bc_build_t *b) {
  const bc_tensor_t *g = bc_arg_tensor(b, 0), *i = bc_arg_tensor(b, 1), *y = bc_type(b, 0);
  bc_tensor_t up, index, out;
  embedding_step_t *p;
  if (!g || g->dtype != AOT_F32 || g->rank < 1 || !i || i->dtype != AOT_I64 || bc_arg_int(b, 4, 0) ||
      y->dtype != AOT_F32 || y->rank != 2 || bc_numel(g) != bc_numel(i) * y->sizes[1])
    return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, g, &up));
  AOT_TRY(bc_contiguous(b, i, &index));
  AOT_TRY(bc_result_dense(b, 0, &out));
  BC_STEP(b, run_embedding_backward, p);
  *p = (embedding_step_t){.table = bc_use(b, &out), .index = bc_use(b, &index), .y = bc_use(b, &up)};
  p->n_table = out.sizes[0];
  p->width = out.sizes[1];
  p->rows = bc_numel(&index);
  p->padding = bc_arg_int(b, 3, -1);
  return AOT_OK;
}

static const bc_lowering_t rows[] = {
    {"aten.embedding_dense_backward.default", lower_embedding_backward},
};
const bc_lowering_table_t bc_lowerings_embedding = BC_TABLE(rows);
