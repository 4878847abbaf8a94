#include "group_across.h"

#include "kit/reference/rk_core.h"

aot_status_t bc_across_add(lw_build_t *b, uint32_t store, uint32_t n_parts, const lw_tensor_t *result,
                           bc_across_t *out) {
  const int64_t line = LW_ALIGN / (int64_t)sizeof(double);
  *out = (bc_across_t){.store = store, .type = *result, .n = lw_numel(result)};
  out->pitch = (out->n + line - 1) / line * line;
  return lw_scratch(b, (uint64_t)out->pitch * n_parts * sizeof(double), &out->memory);
}

void bc_across_use(lw_build_t *b, bc_across_t *a) {
  a->out = lw_use(b, &a->type);
  a->parts = lw_use(b, &a->memory);
}

char *bc_across_part(const lw_frame_t *f, const bc_across_t *a, int32_t part) {
  return lw_at(f, a->parts) + part * a->pitch * (int64_t)sizeof(double);
}

void bc_across_join(const lw_frame_t *f, const bc_across_t *a, int32_t n_parts) {
  const double *parts = (const double *)(const void *)lw_at(f, a->parts);
  const int64_t size = (int64_t)aot_dtype_size(a->type.dtype);
  char *out = lw_at(f, a->out);
  for (int64_t i = 0; i < a->n; i++) {
    double sum = parts[i];
    for (int32_t part = 1; part < n_parts; part++) sum += parts[part * a->pitch + i];
    rk_store_f(out + lw_place(&a->type, i) * size, a->type.dtype, sum);
  }
}
