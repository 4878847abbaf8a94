/* fourier.c - see fourier.h. */
#include "fourier.h"

#include <aot/inline.h>
#include <string.h>

static const at_fft_kind_t kinds[] = {
    {"fft", 0, 0, 0, 0},   {"ifft", 1, 0, 0, 0}, {"rfft", 0, 0, 1, 0},
    {"irfft", 1, 1, 0, 0}, {"hfft", 0, 1, 0, 1}, {"ihfft", 1, 0, 1, 1},
};

/* "aten.fft_rfft2.default" is rfft. */
static const at_fft_kind_t *kind_of(const char *name) {
  const char *from = strstr(name, "fft_");
  size_t i;
  for (i = 0; from && i < sizeof kinds / sizeof kinds[0]; i++) {
    size_t n = strlen(kinds[i].name);
    if (strncmp(from + 4, kinds[i].name, n) == 0 && strspn(from + 4 + n, "2n.") > 0) return &kinds[i];
  }
  return NULL;
}

/* Numbers of an int or a list of them. */
static uint32_t numbers(const aot_arg_t *a, const int64_t **out) {
  *out = NULL;
  if (!a || a->kind == AOT_ARG_NONE) return 0;
  *out = a->kind == AOT_ARG_INT ? &a->u.i : a->u.ints;
  return a->kind == AOT_ARG_INT ? 1 : a->n;
}

at_fft_plan_t at_fft_plan(at_infer_t *c, const aot_type_t *self, const aot_arg_t *n, const aot_arg_t *s,
                          const aot_arg_t *dim) {
  at_fft_plan_t p;
  const int64_t *given, *dims;
  uint32_t n_given = numbers(n && n->kind != AOT_ARG_NONE ? n : s, &given), n_dims = numbers(dim, &dims), i, k;
  memset(&p, 0, sizeof p);
  p.kind = kind_of(c->row->name);
  /* without either: all dimensions; with s: the last ones */
  p.n = n_dims ? n_dims : n_given ? n_given : (uint32_t)self->rank;
  if (!p.kind || p.n > (uint32_t)self->rank || (n_given && n_given != p.n)) {
    at_fail(c, "%u sizes for %u dimensions of a tensor of rank %d", n_given, n_dims, (int)self->rank);
    return p;
  }
  for (i = 0; i < p.n; i++) {
    int64_t size;
    p.dims[i] = at_wrap(c, n_dims ? dims[i] : (int64_t)self->rank - p.n + i, self->rank);
    if (c->status != AOT_OK) return p;
    for (k = 0; k < i; k++)
      if (p.dims[k] == p.dims[i]) at_fail(c, "dimension %d is named twice", (int)p.dims[i]);
    size = self->sizes[p.dims[i]];
    if (p.kind->half_in && i + 1 == p.n) size = at_mul(c, at_sub(c, size, 1), 2);
    p.points[i] = n_given && given[i] != -1 ? given[i] : size;
    if (at_below(c, p.points[i], 1)) at_fail(c, "%lld points to transform", (long long)at_hint(c, p.points[i]));
  }
  return p;
}
