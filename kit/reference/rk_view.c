/* rk_view.c - see rk_view.h. */
#include "rk_view.h"
#include <aot/inline.h>

aot_status_t rk_view_begin(rk_ctx_t *c, const rk_tensor_t **out_self) {
  AOT_TRY(rk_need_tensor(c, 0, out_self));
  for (uint32_t r = 0; r < c->call->n_results; r++) c->call->results[r] = **out_self;
  return AOT_OK;
}

aot_status_t rk_view_expect(rk_ctx_t *c, int64_t n) {
  RK_CHECK(c, (int64_t)c->call->n_results == n, "the operator gives %lld results, %u are declared", (long long)n,
           c->call->n_results);
  return AOT_OK;
}

void rk_view_drop(const rk_tensor_t *self, const uint8_t *marks, rk_tensor_t *out) {
  out->rank = 0;
  for (int32_t d = 0; d < self->rank; d++) {
    if (marks[d]) continue;
    out->sizes[out->rank] = self->sizes[d];
    out->strides[out->rank++] = self->strides[d];
  }
}

/* From the first element in memory to the last (INT64_MAX: beyond all memory); is there something else between them? 0:
 * no elements, or strides below 0. */
static int extent_of(const rk_tensor_t *t, int64_t *first, int64_t *last, int *gaps) {
  int32_t order[AOT_MAX_RANK];
  int64_t way;
  *first = *last = t->offset;
  *gaps = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    int32_t k = d;
    if (t->sizes[d] == 0 || t->strides[d] < 0) return 0;
    for (; k > 0 && t->strides[order[k - 1]] > t->strides[d]; k--) order[k] = order[k - 1];
    order[k] = d;
  }
  for (int32_t k = 0; k < t->rank; k++) {
    if (t->sizes[order[k]] == 1) continue;
    *gaps |= t->strides[order[k]] > *last - *first + 1;
    if (__builtin_mul_overflow(t->sizes[order[k]] - 1, t->strides[order[k]], &way) ||
        __builtin_add_overflow(*last, way, last)) {
      *last = INT64_MAX;
      return 1;
    }
  }
  return 1;
}

aot_status_t rk_view_shown(rk_ctx_t *c, const rk_tensor_t *self, const rk_tensor_t *window) {
  int64_t first, last, from, to;
  int gaps, ignored, same = self->offset == window->offset;
  int32_t k = 0;
  for (int32_t d = 0; d < window->rank; d++)
    RK_CHECK(c, window->sizes[d] >= 0 && window->strides[d] >= 0, "a window of size %lld and stride %lld",
             (long long)window->sizes[d], (long long)window->strides[d]);
  for (int32_t d = 0; d < window->rank && same; d++) {
    if (window->sizes[d] == 1) continue;
    while (k < self->rank && self->sizes[k] == 1) k++;
    same = k < self->rank && window->sizes[d] <= self->sizes[k] && window->strides[d] == self->strides[k];
    k++;
  }
  if (same || !extent_of(window, &from, &to, &ignored)) return AOT_OK;
  RK_CHECK(c, extent_of(self, &first, &last, &gaps) && !gaps && from >= first && to <= last,
           "elements %lld to %lld of the storage are asked for, of a tensor that is not all of them", (long long)from,
           (long long)to);
  return AOT_OK;
}

aot_status_t rk_run_view(rk_ctx_t *c) {
  rk_tensor_t *views, *actual = c->call->results, *copy;
  rk_call_t call = *c->call;
  rk_ctx_t inner = *c;
  const rk_tensor_t *self;
  aot_status_t status;
  RK_SCRATCH(c, (int64_t)call.n_results + 1, views);
  call.results = views;
  inner = *c; /* with the scratch chunk in its list */
  inner.call = &call;
  status = c->kernel->view(&inner);
  c->chunks = inner.chunks;
  if (status == AOT_OK) {
    for (uint32_t r = 0; r < call.n_results; r++) {
      RK_CHECK(c, rk_tensor_fits(&views[r]), "the view reaches outside its storage");
      AOT_TRY(rk_put_tensor(c, r, &views[r]));
    }
    return AOT_OK;
  }
  if (status != AOT_E_UNIMPLEMENTED || !rk_wants(c, 0)) return status;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  RK_CHECK(c, rk_numel(self) == rk_numel(actual), "%lld elements do not fill the declared result of %lld",
           (long long)rk_numel(self), (long long)rk_numel(actual));
  /* a dense copy in element order, then any shape */
  RK_SCRATCH(c, 1, copy);
  {
    char *bytes;
    *copy = *self;
    copy->nbytes = (uint64_t)rk_numel(self) * aot_dtype_size(self->dtype);
    RK_SCRATCH(c, (int64_t)copy->nbytes, bytes);
    copy->data = bytes;
    rk_lay_dense(copy);
    rk_copy(copy, self);
    copy->rank = actual->rank;
    for (int32_t d = 0; d < actual->rank; d++) copy->sizes[d] = actual->sizes[d];
    rk_lay_dense(copy);
    rk_copy(actual, copy);
  }
  return AOT_OK;
}
