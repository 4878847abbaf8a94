/* Random programs of views and writes: functionalized and run on backend-ref they must do what eager.c does.
 *
 * differ [COUNT [SEED]]: four kinds in turn. Plain: outputs, inputs and buffers after the call, and which of them share
 * memory. Gradients, with either partition in between: the gradients' products with a direction are compared with eager
 * derivatives along it, and these with finite differences where the program has no detach and no no_grad. Symbolic: a
 * size is a symbol, and the compiled program also runs with another number for it. A failing program is reduced and
 * printed. */
#include "program_text.h"
#include "workshop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, GRADIENTS, SYMBOLIC, GRADIENTS_CUT, N_KINDS };
static const char *const stages[N_KINDS] = {
    "functionalize backend-ref", "functionalize autograd partition-default backend-ref", "functionalize backend-ref",
    "functionalize autograd partition-mincut backend-ref"};

static int differentiates(int kind) { return kind == GRADIENTS || kind == GRADIENTS_CUT; }

/* ---- random numbers: xorshift64* ---- */

typedef struct random_state {
  uint64_t s;
} random_t;

static uint64_t next(random_t *r) {
  r->s ^= r->s >> 12;
  r->s ^= r->s << 25;
  r->s ^= r->s >> 27;
  return r->s * UINT64_C(2685821657736338717);
}

static int64_t below(random_t *r, int64_t n) { return n > 0 ? (int64_t)(next(r) >> 33) % n : 0; }
static double number(random_t *r) { return (double)(next(r) >> 11) / 4503599627370496.0 - 1.0; }

/* ---- the generator ---- */

static void random_sizes(random_t *r, int kind, eg_shape_t *t) {
  t->rank = 1 + (int)below(r, 3);
  for (int d = 0; d < t->rank; d++)
    if (kind == SYMBOLIC) t->size[d] = below(r, 2) ? EG_SYMBOL : 1 + below(r, 2);
    else t->size[d] = below(r, 40) ? 1 + below(r, 4) : 0;
}

/* Contiguous, in another order, or with gaps. */
static void random_strides(random_t *r, int kind, eg_input_t *in) {
  eg_shape_t *t = &in->at;
  int order[EG_RANK], style = kind == SYMBOLIC ? 0 : (int)below(r, 8);
  int64_t step = 1;
  for (int d = 0; d < t->rank; d++) order[d] = t->rank - 1 - d;
  if (style == 1 || style == 2)
    for (int d = 0; d < t->rank; d++) {
      int other = (int)below(r, t->rank), keep = order[d];
      order[d] = order[other], order[other] = keep;
    }
  if (style == 3) step = 2;
  t->offset = style == 3 ? 1 : 0;
  for (int d = 0; d < t->rank; d++) t->stride[order[d]] = step, step *= t->size[order[d]] ? t->size[order[d]] : 1;
  in->numel = (int)(step + t->offset);
}

/* Its contents are in the text: no gaps, few bytes. */
static void contiguous_buffer(eg_input_t *in) {
  int64_t step = 1;
  while (eg_count(&in->at) > 32) in->at.rank--;
  for (int d = in->at.rank - 1; d >= 0; d--) in->at.stride[d] = step, step *= in->at.size[d] ? in->at.size[d] : 1;
  in->at.offset = 0;
  in->numel = (int)step;
}

static void random_inputs(random_t *r, int kind, eg_program_t *p) {
  p->n_inputs = 2 + (int)below(r, 2);
  for (int i = 0; i < p->n_inputs; i++) {
    eg_input_t *in = &p->input[i];
    random_sizes(r, kind, &in->at);
    random_strides(r, kind, in);
    in->is_buffer = i > 0 && kind != SYMBOLIC && below(r, 4) == 0;
    in->at.dtype = i > 0 && below(r, 6) == 0 ? EG_I64 : EG_F64;
    in->requires_grad = differentiates(kind) && !in->is_buffer && in->at.dtype == EG_F64 && (i == 0 || below(r, 2));
    for (int k = 0; k < EG_NUMEL; k++) in->data[k] = number(r), in->direction[k] = number(r);
    for (int k = 0; k < EG_NUMEL && in->at.dtype == EG_I64; k++) in->data[k] = (double)(below(r, 9) - 4);
    if (in->is_buffer) contiguous_buffer(in);
  }
  p->index[0] = below(r, 2);
  p->index[1] = 1 - p->index[0];
}

static void random_view_sizes(random_t *r, const eg_shape_t *t, eg_step_t *s) {
  int64_t left = eg_count(t);
  s->p[0] = 1 + below(r, EG_RANK);
  for (int64_t d = 0; d < s->p[0]; d++) {
    int64_t size = 1 + below(r, 4);
    if (d + 1 == s->p[0]) size = left;
    else if (left % size != 0) size = 1;
    s->p[1 + d] = size;
    if (size > 0) left /= size;
  }
}

static void random_args(random_t *r, const eg_shape_t *t, eg_step_t *s) {
  int rank = t->rank ? t->rank : 1;
  s->number = (double)(below(r, 9) - 4) / 4 + 0.125;
  s->p[0] = below(r, rank);
  s->p[1] = below(r, rank);
  switch (s->op) {
    /* clang-format off */
    case EG_VIEW: case EG_RESHAPE: random_view_sizes(r, t, s); break;
    case EG_SELECT: s->p[1] = below(r, t->rank ? t->size[s->p[0]] : 1); break;
    case EG_SLICE: s->p[3] = 1 + below(r, 2); /* fall through */
    case EG_NARROW: s->p[1] = below(r, 2), s->p[2] = 1 + below(r, 2); break;
    case EG_SPLIT: case EG_CHUNK: case EG_UNFLATTEN: case EG_TENSOR_SPLIT: s->p[1] = 1 + below(r, 2); break;
    case EG_SPLIT_SIZES: s->p[1] = 1 + below(r, 2), s->p[2] = t->rank ? t->size[s->p[0]] - s->p[1] : 1; break;
    case EG_UNFOLD: s->p[1] = 1 + below(r, 2), s->p[2] = 1 + below(r, 3); break;
    case EG_DIAGONAL: s->p[2] = below(r, 3); break;
    case EG_TRIU_: case EG_TRIL_: s->p[1] = below(r, 3) - 1; break;
    case EG_TO: case EG_TO_COPY: s->p[0] = below(r, 3) ? EG_F64 : EG_I64; break;
    case EG_AS_STRIDED: s->p[0] = 1 + below(r, 3), s->p[1] = 1 + below(r, 2), s->p[2] = below(r, 3); break;
    case EG_UNSQUEEZE: case EG_UNSQUEEZE_: s->p[0] = below(r, t->rank + 1); break;
    /* clang-format on */
    case EG_EXPAND:
      s->p[0] = t->rank + (t->rank < EG_RANK && below(r, 2));
      for (int64_t d = s->p[0] - 1, e = t->rank - 1; d >= 0; d--, e--)
        s->p[1 + d] = e >= 0 && t->size[e] != 1 ? t->size[e] : 1 + below(r, 3);
      break;
    case EG_PERMUTE:
      s->p[0] = t->rank;
      for (int d = 0; d < t->rank; d++) {
        int64_t at = below(r, d + 1);
        s->p[1 + d] = s->p[1 + at], s->p[1 + at] = d;
      }
      break;
    default: break;
  }
}

static int takes_two(eg_op_t op) {
  static const eg_op_t two[] = {EG_ADD,        EG_SUB,          EG_MUL,        EG_ADD_,
                                EG_SUB_,       EG_MUL_,         EG_ADDCMUL_,   EG_LERP_,
                                EG_COPY_,      EG_MASKED_FILL_, EG_INDEX_PUT_, EG_INDEX_PUT_ADD_,
                                EG_INDEX_ADD_, EG_INDEX_COPY_,  EG_ADD_OUT,    EG_MUL_OUT};
  for (size_t i = 0; i < sizeof two / sizeof *two; i++)
    if (two[i] == op) return 1;
  return 0;
}

static int renames(eg_op_t op) { return op >= EG_T_ && op < EG_DETACH_; }

/* Operators whose arguments hold sizes, or whose results' number hangs on one; and index, whose strides eager.c does
 * not infer. */
static int needs_numbers(const eg_step_t *s) {
  switch (s->op) {
    /* clang-format off */
    case EG_VIEW: case EG_RESHAPE: case EG_EXPAND: case EG_AS_STRIDED: return 1;
    case EG_SPLIT: case EG_SPLIT_SIZES: case EG_TENSOR_SPLIT: case EG_UNBIND: case EG_CHUNK: case EG_DIAGONAL: case EG_INDEX:
    case EG_UNFLATTEN: case EG_UNFOLD: return 1;
    case EG_SELECT: return s->p[1] >= 2;
    case EG_SLICE: return s->p[1] + (s->p[2] - 1) * s->p[3] + 1 > 2; /* the least that the symbol can be */
    case EG_NARROW: return s->p[1] + s->p[2] > 2;
    /* clang-format on */
    default: return 0;
  }
}

/* Numbers between the elements of an input are not passed to a program. */
static int has_gaps(const eg_program_t *p, const eg_tensor_t *t) {
  return t->storage < p->n_inputs && p->input[t->storage].numel != eg_count(&p->input[t->storage].at);
}

static int64_t pick(random_t *r, int n) { return below(r, 3) ? n - 1 - below(r, n < 4 ? n : 4) : below(r, n); }

/* The last value of truths, or any. */
static int some_mask(random_t *r, const eg_world_t *w) {
  for (int v = w->n_values - 1; v >= 0; v--)
    if (eg_value(w, v)->at.dtype == EG_BOOL) return v;
  return (int)pick(r, w->n_values);
}

static void generate(random_t *r, int kind, eg_program_t *p, eg_world_t *w) {
  int wanted = 3 + (int)below(r, 12), tries = 0, no_grad = 0;
  memset(p, 0, sizeof *p);
  random_inputs(r, kind, p);
  eg_begin(w, p);
  while (p->n_steps < wanted && tries++ < 400) {
    eg_step_t s = {.op = (eg_op_t)below(r, EG_N_OPS), .b = -1, .c = -1};
    if (below(r, 3) == 0) s.op = (eg_op_t)(EG_ADD_ + below(r, EG_N_OPS - EG_ADD_));
    if (differentiates(kind) && below(r, 6) == 0) no_grad = !no_grad && below(r, 2);
    s.no_grad = no_grad;
    s.a = (int)pick(r, w->n_values);
    const eg_shape_t *t = &eg_value(w, s.a)->at;
    if (takes_two(s.op)) s.b = (int)pick(r, w->n_values);
    if (s.op == EG_MASKED_FILL_) s.b = some_mask(r, w);
    if (s.op >= EG_ADD_OUT) s.c = (int)pick(r, w->n_values);
    if (s.op >= EG_ADD_OUT && differentiates(kind) && !no_grad) continue; /* as PyTorch refuses */
    random_args(r, t, &s);
    if (s.op == EG_AS_STRIDED && has_gaps(p, eg_value(w, s.a))) continue;
    if (kind == SYMBOLIC && needs_numbers(&s)) continue;
    /* refused */
    if (renames(s.op) && w->tensor_of[s.a] < p->n_inputs && p->input[w->tensor_of[s.a]].is_buffer) continue;
    if (eg_run_step(w, p, &s)) p->step[p->n_steps++] = s;
  }
  if (differentiates(kind)) { /* there is something to differentiate */
    eg_step_t last = {.op = EG_TANH, .b = -1, .c = -1};
    if (eg_run_step(w, p, &last)) p->step[p->n_steps++] = last;
    p->output[p->n_outputs++] = w->n_values - 1;
  }
  for (int n = 1 + (int)below(r, 4); n > 0; n--) p->output[p->n_outputs++] = (int)pick(r, w->n_values);
}

/* ---- comparing ---- */

static aoth_tensor_t as_tensor(void *storage, int numel, const eg_shape_t *t) {
  static const int32_t dtypes[] = {[EG_F64] = AOT_F64, [EG_I64] = AOT_I64, [EG_BOOL] = AOT_BOOL};
  aoth_tensor_t r = {
      .data = storage, .nbytes = (uint64_t)numel * 8, .dtype = dtypes[t->dtype], .rank = t->rank, .offset = t->offset};
  for (int d = 0; d < t->rank; d++) r.sizes[d] = t->size[d], r.strides[d] = t->stride[d];
  return r;
}

static int near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * (1 + fabs(b)); }

static int same_numbers(const aoth_tensor_t *got, const eg_world_t *w, const eg_tensor_t *want) {
  aoth_walk_t walk;
  aoth_tensor_t shape = as_tensor(NULL, 0, &want->at);
  if (got->rank != shape.rank || got->dtype != shape.dtype || !aoth_tensor_same_sizes(got, &shape)) return 0;
  aoth_walk_begin(&walk, got, NULL);
  for (int64_t i = 0; walk.left > 0; i++, aoth_walk_next(&walk))
    if (!near(kit_element_load(got->dtype, walk.at[0]), w->number[want->storage][eg_position(&want->at, i)], 1e-10))
      return 0;
  return 1;
}

/* What shared a storage shares one, at the same distance, with the same strides. */
static int same_alias(const aoth_tensor_t *g, const aoth_tensor_t *h, const eg_tensor_t *a, const eg_tensor_t *b) {
  if (eg_count(&a->at) == 0 || eg_count(&b->at) == 0) return 1; /* no memory to share */
  if ((a->storage == b->storage) != (g->data == h->data)) return 0;
  if (a->storage != b->storage) return 1;
  for (int d = 0; d < a->at.rank; d++)
    if (a->at.size[d] > 1 && g->strides[d] != a->at.stride[d]) return 0;
  return g->offset - h->offset == a->at.offset - b->at.offset;
}

typedef struct result {
  aoth_tensor_t got[16];
  const eg_tensor_t *want[16];
  int n;
} result_t;

/* Inputs of the program are user inputs, numbered, and buffers, named. */
static int ordinal(const eg_program_t *p, int input) {
  int n = 0;
  for (int v = 0; v < input; v++) n += !p->input[v].is_buffer;
  return n;
}

/* What the results of the step are called: outputs, then inputs and buffers after the call. */
static void key_of(const eg_program_t *p, int i, char *key, size_t size) {
  int k = i - p->n_outputs;
  if (k < 0) snprintf(key, size, "output.%d", i);
  else if (p->input[k].is_buffer) snprintf(key, size, "buffer_after.x%d", k);
  else snprintf(key, size, "input_after.%d", ordinal(p, k));
}

static int compare_values(const ws_t *c, const eg_program_t *p, const eg_world_t *w, char *why, size_t size) {
  result_t r = {.n = 0};
  for (int i = 0; i < p->n_outputs + p->n_inputs; i++) {
    int k = i < p->n_outputs ? i : i - p->n_outputs;
    char key[32];
    key_of(p, i, key, sizeof key);
    r.want[r.n] = eg_value(w, i < p->n_outputs ? p->output[k] : k);
    if (!aoth_step_get(c->step, key, &r.got[r.n]) || !same_numbers(&r.got[r.n], w, r.want[r.n])) {
      snprintf(why, size, "%s differs from eager execution", key);
      return 0;
    }
    for (int other = 0; other < r.n; other++)
      if (!same_alias(&r.got[r.n], &r.got[other], r.want[r.n], r.want[other])) {
        snprintf(why, size, "%s and result %d share memory otherwise than in eager execution", key, other);
        return 0;
      }
    r.n++;
  }
  return 1;
}

/* ---- derivatives ---- */

static double tangent(int output, int64_t element) {
  return 0.25 + 0.5 * cos(1.0 + 3.0 * output + 0.7 * (double)element);
}

/* The sum of outputs weighed by the tangents: its number or its derivative. */
static double weighed(const eg_program_t *p, const eg_world_t *w, int derivative) {
  double sum = 0;
  for (int k = 0; k < p->n_outputs; k++) {
    const eg_tensor_t *t = eg_value(w, p->output[k]);
    for (int64_t i = 0; t->at.dtype == EG_F64 && i < eg_count(&t->at); i++) {
      int64_t at = eg_position(&t->at, i);
      sum += tangent(k, i) * (derivative ? w->derivative[t->history][at] : w->number[t->storage][at]);
    }
  }
  return sum;
}

static double shifted(const eg_program_t *p, double h) {
  static eg_world_t w;
  eg_program_t q = *p;
  for (int i = 0; i < q.n_inputs; i++)
    for (int k = 0; q.input[i].requires_grad && k < EG_NUMEL; k++) q.input[i].data[k] += h * q.input[i].direction[k];
  return eg_run(&w, &q) ? weighed(&q, &w, 0) : 0;
}

static double slope(const eg_program_t *p, double h) { return (shifted(p, h) - shifted(p, -h)) / (2 * h); }

static int hides_gradients(const eg_program_t *p) {
  for (int i = 0; i < p->n_steps; i++)
    if (p->step[i].no_grad || p->step[i].op == EG_DETACH || p->step[i].op == EG_DETACH_) return 1;
  return 0;
}

static double product_with_direction(const ws_t *c, const eg_program_t *p) {
  double sum = 0;
  for (int k = 0; k < p->n_inputs; k++) {
    char key[32];
    aoth_tensor_t g;
    aoth_walk_t walk;
    snprintf(key, sizeof key, "grad.input.%d", ordinal(p, k));
    if (!p->input[k].requires_grad || !aoth_step_get(c->step, key, &g)) continue;
    aoth_walk_begin(&walk, &g, NULL);
    for (int64_t i = 0; walk.left > 0; i++, aoth_walk_next(&walk))
      sum += kit_element_load(AOT_F64, walk.at[0]) * p->input[k].direction[eg_position(&p->input[k].at, i)];
  }
  return sum;
}

static int compare_gradients(const ws_t *c, const eg_program_t *p, const eg_world_t *w, char *why, size_t size) {
  static double storage[8][EG_NUMEL];
  aoth_tensor_t given[8];
  const aoth_tensor_t *tangents[8];
  double want = weighed(p, w, 1);
  for (int k = 0; k < p->n_outputs; k++) {
    eg_shape_t shape = eg_value(w, p->output[k])->at;
    given[k] = as_tensor(storage[k], (int)eg_count(&shape), &shape);
    aoth_tensor_contiguous(&given[k]);
    for (int64_t i = 0; i < eg_count(&shape); i++) storage[k][i] = tangent(k, i);
    tangents[k] = shape.dtype == EG_F64 ? &given[k] : NULL;
  }
  if (!hides_gradients(p) && !near(slope(p, 1e-6), want, 1e-5) && !near(slope(p, 1e-8), want, 1e-4)) {
    snprintf(why, size, "the eager derivative is %.9g, finite differences say %.9g", want, slope(p, 1e-6));
    return 0;
  }
  if (aoth_step_backward(c->step, tangents, (uint32_t)p->n_outputs) != AOT_OK) {
    snprintf(why, size, "the backward fails: %s", ws_complaints(c));
    return 0;
  }
  if (near(product_with_direction(c, p), want, 1e-9)) return 1;
  snprintf(why, size, "derivative along the direction: %.9g, eagerly %.9g", product_with_direction(c, p), want);
  return 0;
}

/* ---- one program ---- */

static int run_inputs(ws_t *c, const eg_program_t *p, char *why, size_t size) {
  static union {
    double f64[EG_NUMEL];
    int64_t i64[EG_NUMEL];
  } storage[4];
  aoth_tensor_t inputs[5];
  uint32_t n = 0;
  int64_t two = 2, index[2] = {p->index[0], p->index[1]};
  for (int i = 0; i < p->n_inputs; i++) {
    for (int k = 0; k < EG_NUMEL; k++)
      if (p->input[i].at.dtype == EG_I64) storage[i].i64[k] = (int64_t)p->input[i].data[k];
      else storage[i].f64[k] = p->input[i].data[k];
    if (!p->input[i].is_buffer) inputs[n++] = as_tensor(&storage[i], p->input[i].numel, &p->input[i].at);
  }
  inputs[n++] = aoth_tensor_make(index, AOT_I64, 1, &two);
  if (aoth_step_forward(c->step, inputs, n) == AOT_OK) return 1;
  snprintf(why, size, "running fails: %s", ws_complaints(c));
  return 0;
}

/* The same program with another number for the symbol. */
static int resized(const eg_program_t *p, eg_program_t *q, eg_world_t *w) {
  *q = *p;
  for (int i = 0; i < q->n_inputs; i++) {
    eg_shape_t *t = &q->input[i].at;
    int64_t step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
      if (t->size[d] == EG_SYMBOL) t->size[d] = 5;
      t->stride[d] = step;
      step *= t->size[d];
    }
    q->input[i].numel = (int)step;
  }
  return eg_run(w, q);
}

static int check_compiled(ws_t *c, int kind, const eg_program_t *p, const eg_world_t *w, char *why, size_t size) {
  static eg_world_t larger;
  eg_program_t q;
  if (!run_inputs(c, p, why, size) || !compare_values(c, p, w, why, size)) return 0;
  if (differentiates(kind)) return compare_gradients(c, p, w, why, size);
  if (kind != SYMBOLIC || !resized(p, &q, &larger)) return 1;
  return run_inputs(c, &q, why, size) && compare_values(c, &q, &larger, why, size);
}

/* What is not supported, and said to be. */
static int is_refusal(const char *why) {
  static const char *const refusals[] = {"a write through aten.expand", "a write through unfold",
                                         "derivative of as_strided", "functionalize.storage"};
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    if (strstr(why, refusals[i])) return 1;
  return 0;
}

/* 1: agrees, 0: why not. p has been run in w. */
static int check(ws_t *shops, int kind, const eg_program_t *p, const eg_world_t *w, char *why, size_t size,
                 int *out_refused) {
  ws_t *c = &shops[kind];
  kit_text_t ir = {0};
  c->stages = stages[kind];
  eg_print(p, w, kind == SYMBOLIC, &ir);
  int ok = ws_compile(c, ir.data);
  if (!ok) snprintf(why, size, "it does not compile: %s", ws_complaints(c));
  int refused = !ok && is_refusal(why);
  ok = ok && check_compiled(c, kind, p, w, why, size);
  kit_text_deinit(&ir);
  *out_refused |= refused;
  return ok || refused;
}

/* ---- reducing ---- */

/* The program without step `victim` and what hangs on it; 0: nothing would be left. */
static int without(const eg_program_t *p, int victim, eg_program_t *out) {
  int map[EG_VALUES], n = p->n_inputs;
  *out = *p;
  out->n_steps = out->n_outputs = 0;
  for (int v = 0; v < EG_VALUES; v++) map[v] = v < p->n_inputs ? v : -1;
  for (int i = 0; i < p->n_steps; i++) {
    eg_step_t s = p->step[i];
    if (i == victim || map[s.a] < 0 || (s.b >= 0 && map[s.b] < 0) || (s.c >= 0 && map[s.c] < 0)) continue;
    s.a = map[s.a];
    if (s.b >= 0) s.b = map[s.b];
    if (s.c >= 0) s.c = map[s.c];
    for (int r = 0; r < s.n_results; r++) map[s.first + r] = n++;
    out->step[out->n_steps++] = s;
  }
  for (int k = 0; k < p->n_outputs; k++)
    if (map[p->output[k]] >= 0 && victim != p->n_steps + k) out->output[out->n_outputs++] = map[p->output[k]];
  return out->n_outputs > 0;
}

static void reduce(ws_t *shops, int kind, eg_program_t *p, eg_world_t *w, char *why, size_t size) {
  eg_program_t smaller;
  for (int victim = p->n_steps + p->n_outputs - 1; victim >= 0; victim--) {
    char reason[1024] = "";
    int refused = 0;
    if (!without(p, victim, &smaller) || !eg_run(w, &smaller)) continue;
    if (check(shops, kind, &smaller, w, reason, sizeof reason, &refused)) continue;
    if (strstr(reason, "nothing-to-differentiate")) continue;
    *p = smaller;
    snprintf(why, size, "%s", reason);
    victim = p->n_steps + p->n_outputs;
  }
  eg_run(w, p);
}

static int try_one(ws_t *shops, int kind, uint64_t seed, int *out_refused, uint64_t used[EG_N_OPS]) {
  static eg_world_t w;
  static eg_program_t p;
  random_t r = {seed * UINT64_C(0x9E3779B97F4A7C15) + 0x1234567};
  kit_text_t ir = {0};
  char why[2048] = "";
  for (int i = 0; i < 8; i++) next(&r);
  generate(&r, kind, &p, &w);
  for (int i = 0; i < p.n_steps; i++) used[p.step[i].op]++;
  if (!eg_run(&w, &p) || check(shops, kind, &p, &w, why, sizeof why, out_refused)) return 1;
  reduce(shops, kind, &p, &w, why, sizeof why);
  eg_print(&p, &w, kind == SYMBOLIC, &ir);
  printf("FAILED seed %llu, stages %s: %s\n%s\n", (unsigned long long)seed, stages[kind], why, ir.data);
  kit_text_deinit(&ir);
  return 0;
}

int main(int argc, char **argv) {
  uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 500, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
           n_failed = 0;
  uint64_t n_refused = 0;
  ws_t shops[N_KINDS] = {0}; /* one a kind */
  uint64_t used[EG_N_OPS] = {0};
  int rarest = 0;
  for (uint64_t i = 0; i < count && n_failed < 20; i++) {
    int refused = 0;
    n_failed += !try_one(shops, (int)((seed + i) % N_KINDS), seed + i, &refused, used);
    n_refused += (uint64_t)refused;
  }
  for (int k = 0; k < N_KINDS; k++) ws_close(&shops[k]);
  for (int op = 0; op < EG_N_OPS; op++)
    if (used[op] < used[rarest]) rarest = op;
  printf("%llu programs, %llu failed, %llu refused; %d operators, the rarest %s, %llu times\n",
         (unsigned long long)count, (unsigned long long)n_failed, (unsigned long long)n_refused, (int)EG_N_OPS,
         eg_names[rarest], (unsigned long long)used[rarest]);
  return n_failed != 0 || n_refused * 50 > count + 50 || (count >= 500 && used[rarest] == 0);
}
