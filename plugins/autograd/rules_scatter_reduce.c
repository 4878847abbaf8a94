/* Scattering with a reduction: scatter_reduce, index_reduce, scatter with reduce=. PyTorch: scatter_reduce_backward,
 * index_reduce_backward (FunctionsManual.cpp). */
#include "rules.h"

typedef struct rendezvous {
  em_x_t x, dim, index, src, g, y; /* src: the part of it that the index reaches */
  ag_type_t tx, ts;                /* ts: of that part */
  int with_self;
} rendezvous_t;

static em_x_t read_back(em_t *a, const rendezvous_t *m, em_x_t v) { return AG_OP(a, "gather", v, m->dim, m->index); }

/* At places of self: start + the v that met there. */
static em_x_t met(em_t *a, const rendezvous_t *m, em_x_t start, em_x_t v) {
  return AG_OP(a, "scatter_add", start, m->dim, m->index, v);
}

/* sum: each gets g. mean: g divided by how many met. */
static void by_mean(em_t *a, const rendezvous_t *m, em_x_t *at_self, em_x_t *at_src) {
  em_x_t ones = ag_add(a, ag_zeros(a, &m->ts), em_i(1)), n = ag_zeros(a, &m->tx);
  n = met(a, m, m->with_self ? ag_add(a, n, em_i(1)) : n, ones);
  *at_self = ag_div(a, m->g, AG_OP(a, "clamp", n, em_i(1)));
  *at_src = read_back(a, m, *at_self);
}

/* amax, amin: g is shared evenly by those that are the extreme one. */
static void by_extreme(em_t *a, const rendezvous_t *m, em_x_t *at_self, em_x_t *at_src) {
  em_x_t self_is = ag_cast(a, ag_compare(a, "eq", m->x, m->y), m->tx.dtype), src_is, n, share;
  if (!m->with_self) self_is = AG_OP(a, "scatter.value", self_is, m->dim, m->index, em_i(0));
  src_is = ag_cast(a, ag_compare(a, "eq", m->src, read_back(a, m, m->y)), m->ts.dtype);
  n = met(a, m, self_is, src_is);
  share = ag_div(a, m->g, n); /* n is 0 where the extreme one is NaN */
  *at_self = ag_mul(a, share, self_is);
  *at_src = ag_mul(a, read_back(a, m, share), src_is);
}

/* Where v is 0, 1 instead. */
static em_x_t without_zeros(em_t *a, em_x_t v) {
  return AG_OP(a, "masked_fill.Scalar", v, ag_compare(a, "eq", v, em_i(0)), em_i(1));
}

static em_x_t product(em_t *a, const rendezvous_t *m, em_x_t x, em_x_t src) {
  return AG_OP(a, "scatter_reduce.two", x, m->dim, m->index, src, aot_arg_str(aot_str("prod")), em_b(m->with_self));
}

/* prod: the product of the others. A factor other than 0 divides the result by itself; the only 0 among the elements of
 * src that meet gets the product without it. */
static void by_product(em_t *a, const rendezvous_t *m, em_x_t *at_self, em_x_t *at_src) {
  em_x_t filled = without_zeros(a, m->x), zero, n_zero, only, others;
  if (ag_needs(a, "self")) *at_self = ag_mul(a, m->g, ag_div(a, product(a, m, filled, m->src), filled));
  zero = ag_compare(a, "eq", m->src, em_i(0));
  n_zero = read_back(a, m, met(a, m, ag_zeros(a, &m->tx), ag_cast(a, zero, m->tx.dtype)));
  only = AG_OP(a, "logical_and", zero, ag_compare(a, "eq", n_zero, em_i(1)));
  others = product(a, m, m->x, AG_OP(a, "masked_fill.Scalar", m->src, only, em_i(1)));
  *at_src = ag_where(a, only, read_back(a, m, ag_mul(a, m->g, others)),
                     ag_div(a, read_back(a, m, ag_mul(a, m->g, m->y)), without_zeros(a, m->src)));
}

/* The corner of x with these sizes. */
static em_x_t corner(em_t *a, em_x_t x, const int64_t *sizes) {
  ag_type_t t = ag_type(a, x);
  int32_t d;
  for (d = 0; d < t.rank; d++)
    if (t.sizes[d] != sizes[d]) x = AG_OP(a, "slice.Tensor", x, em_i(d), em_i(0), em_i(sizes[d]), em_i(1));
  return x;
}

static int is_one_of(em_t *a, const char *one, const char *other) {
  em_x_t reduce = ag_arg(a, "reduce");
  aot_str_t word = {reduce.u.chars, reduce.n};
  return reduce.kind == AOT_ARG_STR && (aot_str_eq(word, aot_str(one)) || aot_str_eq(word, aot_str(other)));
}

static void differentiate(em_t *a, rendezvous_t *m, const char *source) {
  em_x_t at_self = m->g, at_src = em_none(), full = ag_arg(a, source);
  if (is_one_of(a, "mean", "mean")) by_mean(a, m, &at_self, &at_src);
  else if (is_one_of(a, "prod", "multiply")) by_product(a, m, &at_self, &at_src);
  else if (is_one_of(a, "sum", "add")) at_src = read_back(a, m, m->g);
  else by_extreme(a, m, &at_self, &at_src);
  /* without include_self the places that were written owe nothing to self, the others everything */
  if (!m->with_self && ag_needs(a, "self")) {
    em_x_t ones = ag_add(a, ag_zeros(a, &m->tx), em_i(1)), kept;
    kept = AG_OP(a, "scatter.value", ones, m->dim, m->index, em_i(0));
    at_self = ag_where(a, ag_compare(a, "eq", kept, em_i(0)), em_none(), m->g);
  }
  if (ag_needs(a, "self")) ag_set(a, "self", at_self);
  if (ag_needs(a, source)) {
    ag_type_t t = ag_type(a, full);
    ag_set(a, source, ag_pad_to(a, at_src, t.sizes));
  }
}

/* scatter_reduce.two and scatter.reduce, whose words are add and multiply. */
void ag_rule_scatter_reduce(em_t *a) {
  rendezvous_t m;
  memset(&m, 0, sizeof m);
  m.x = ag_arg(a, "self");
  m.dim = ag_arg(a, "dim");
  m.index = ag_arg(a, "index");
  m.g = ag_g(a, 0);
  m.y = ag_y(a, 0);
  m.tx = ag_type(a, m.x);
  m.src = corner(a, ag_arg(a, "src"), ag_type(a, m.index).sizes);
  m.ts = ag_type(a, m.src);
  m.with_self = ag_at(a, "include_self") == AG_NO_ARG || ag_is_set(a, "include_self", 1);
  differentiate(a, &m, "src");
}

/* A scatter whose index is the same for all slices. */
void ag_rule_index_reduce(em_t *a) {
  rendezvous_t m;
  int64_t sizes[AOT_MAX_RANK];
  int32_t d;
  uint32_t at;
  memset(&m, 0, sizeof m);
  m.x = ag_arg(a, "self");
  m.dim = ag_arg(a, "dim");
  m.src = ag_arg(a, "source");
  m.g = ag_g(a, 0);
  m.y = ag_y(a, 0);
  m.tx = ag_type(a, m.x);
  m.ts = ag_type(a, m.src);
  m.with_self = ag_is_set(a, "include_self", 1);
  at = ag_dim(a, ag_int(a, m.dim, 0), m.ts.rank);
  for (d = 0; d < m.ts.rank; d++) sizes[d] = (uint32_t)d == at ? m.ts.sizes[d] : 1;
  m.index = ag_expand(a, ag_reshape(a, ag_arg(a, "index"), sizes, m.ts.rank), m.ts.sizes, m.ts.rank);
  differentiate(a, &m, "source");
}

/* add: self passes. multiply: what self was multiplied by, once for each time its place was named. */
void ag_rule_scatter_value_reduce(em_t *a) {
  em_x_t g = ag_g(a, 0), ones = ag_add(a, ag_zeros_like(a, ag_arg(a, "self")), em_i(1));
  if (is_one_of(a, "multiply", "multiply"))
    g = ag_mul(a, g,
               AG_OP(a, "scatter.value_reduce", ones, ag_arg(a, "dim"), ag_arg(a, "index"), ag_arg(a, "value"),
                     ag_arg(a, "reduce")));
  ag_set(a, "self", g);
}
