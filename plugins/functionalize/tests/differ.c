/* Random programs of views and writes: functionalized and run on backend-ref they must do what eager.c does.
 *
 * differ [COUNT [SEED]]: three kinds in turn. Plain: outputs, inputs after the call, and which of them share memory. Gradients:
 * autograd and a partition in between; the gradients' products with a direction are compared with eager derivatives along it,
 * and these with finite differences where the program has no detach and no no_grad. Symbolic: a size is a symbol, and the
 * compiled program also runs with another number for it. A failing program is reduced and printed. */
#include "program_text.h"

#include <math.h>
#include <pipeline/pipeline.h>
#include <runtime/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAIN, GRADIENTS, SYMBOLIC, N_KINDS };
static const char *const stages[N_KINDS] = {"functionalize backend-ref", "functionalize autograd partition-default backend-ref",
                                            "functionalize backend-ref"};

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
  for (int d = 0; d < t->rank; d++) t->size[d] = kind == SYMBOLIC ? (below(r, 2) ? EG_SYMBOL : 1 + below(r, 2)) : 1 + below(r, 4);
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
  for (int d = 0; d < t->rank; d++) t->stride[order[d]] = step, step *= t->size[order[d]];
  in->numel = (int)(step + t->offset);
}

static void random_inputs(random_t *r, int kind, eg_program_t *p) {
  p->n_inputs = 2 + (int)below(r, 2);
  for (int i = 0; i < p->n_inputs; i++) {
    eg_input_t *in = &p->input[i];
    random_sizes(r, kind, &in->at);
    random_strides(r, kind, in);
    in->requires_grad = kind == GRADIENTS && (i == 0 || below(r, 2));
    for (int k = 0; k < EG_NUMEL; k++) in->data[k] = number(r), in->direction[k] = number(r);
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
    left /= size;
  }
}

static void random_args(random_t *r, const eg_shape_t *t, eg_step_t *s) {
  int rank = t->rank ? t->rank : 1;
  s->number = (double)(below(r, 9) - 4) / 4 + 0.125;
  s->p[0] = below(r, rank);
  s->p[1] = below(r, rank);
  switch (s->op) {
    case EG_VIEW: case EG_RESHAPE: random_view_sizes(r, t, s); break;
    case EG_SELECT: s->p[1] = below(r, t->rank ? t->size[s->p[0]] : 1); break;
    case EG_SLICE: s->p[3] = 1 + below(r, 2); /* fall through */
    case EG_NARROW: s->p[1] = below(r, 2), s->p[2] = 1 + below(r, 2); break;
    case EG_SPLIT: case EG_CHUNK: s->p[1] = 1 + below(r, 2); break;
    case EG_AS_STRIDED: s->p[0] = 1 + below(r, 3), s->p[1] = 1 + below(r, 2), s->p[2] = below(r, 3); break;
    case EG_UNSQUEEZE: case EG_UNSQUEEZE_: s->p[0] = below(r, t->rank + 1); break;
    case EG_EXPAND:
      s->p[0] = t->rank + (t->rank < EG_RANK && below(r, 2));
      for (int64_t d = s->p[0] - 1, e = t->rank - 1; d >= 0; d--, e--) s->p[1 + d] = e >= 0 && t->size[e] != 1 ? t->size[e] : 1 + below(r, 3);
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
  return op == EG_ADD || op == EG_SUB || op == EG_MUL || op == EG_ADD_ || op == EG_MUL_ || op == EG_COPY_ || op == EG_INDEX_PUT_;
}

/* Operators whose arguments hold sizes, or whose results' number hangs on one; and index, whose strides eager.c does not infer. */
static int needs_numbers(const eg_step_t *s) {
  switch (s->op) {
    case EG_VIEW: case EG_RESHAPE: case EG_EXPAND: case EG_AS_STRIDED: return 1;
    case EG_SPLIT: case EG_UNBIND: case EG_CHUNK: case EG_DIAGONAL: case EG_INDEX: return 1;
    case EG_SELECT: return s->p[1] >= 2;
    case EG_SLICE: return s->p[1] + (s->p[2] - 1) * s->p[3] + 1 > 2; /* the least that the symbol can be */
    case EG_NARROW: return s->p[1] + s->p[2] > 2;
    default: return 0;
  }
}

/* Numbers between the elements of an input are not passed to a program. */
static int has_gaps(const eg_program_t *p, const eg_tensor_t *t) {
  return t->storage < p->n_inputs && p->input[t->storage].numel != eg_count(&p->input[t->storage].at);
}

static int64_t pick(random_t *r, int n) { return below(r, 3) ? n - 1 - below(r, n < 4 ? n : 4) : below(r, n); }

static void generate(random_t *r, int kind, eg_program_t *p, eg_world_t *w) {
  int wanted = 3 + (int)below(r, 12), tries = 0, no_grad = 0;
  memset(p, 0, sizeof *p);
  random_inputs(r, kind, p);
  eg_begin(w, p);
  while (p->n_steps < wanted && tries++ < 400) {
    eg_step_t s = {.op = (eg_op_t)below(r, EG_N_OPS), .b = -1};
    if (below(r, 3) == 0) s.op = (eg_op_t)(EG_ADD_ + below(r, EG_N_OPS - EG_ADD_));
    if (kind == GRADIENTS && below(r, 6) == 0) no_grad = !no_grad && below(r, 2);
    s.no_grad = no_grad;
    s.a = (int)pick(r, w->n_values);
    const eg_shape_t *t = &eg_value(w, s.a)->at;
    if (takes_two(s.op)) s.b = (int)pick(r, w->n_values);
    random_args(r, t, &s);
    if (s.op == EG_AS_STRIDED && has_gaps(p, eg_value(w, s.a))) continue;
    if (kind == SYMBOLIC && needs_numbers(&s)) continue;
    if (eg_run_step(w, p, &s)) p->step[p->n_steps++] = s;
  }
  if (kind == GRADIENTS) { /* there is something to differentiate */
    eg_step_t last = {.op = EG_TANH, .b = -1};
    if (eg_run_step(w, p, &last)) p->step[p->n_steps++] = last;
    p->output[p->n_outputs++] = w->n_values - 1;
  }
  for (int n = 1 + (int)below(r, 4); n > 0; n--) p->output[p->n_outputs++] = (int)pick(r, w->n_values);
}

/* ---- the host ---- */

typedef struct compiled {
  aoth_sink_t *sink;
  aoth_pipeline_t *pipeline;
  aoth_session_t *session;
  aoth_step_t *step;
  char folder[64];
} compiled_t;

static aot_status_t exec(void *self, int32_t graph_kind, const aot_tensor_t *inputs, uint64_t n_inputs, const aot_tensor_t *outputs,
                         uint64_t n_outputs, const int64_t *symbols, uint64_t n_symbols) {
  return aoth_session_run_exe(self, graph_kind, inputs, n_inputs, outputs, n_outputs, symbols, n_symbols);
}

static int put_file(const char *folder, const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  int ok = f && fputs(text, f) >= 0;
  return f ? fclose(f) == 0 && ok : 0;
}

static void drop_file(const char *folder, const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  unlink(path);
}

static int compile(compiled_t *c, const char *ir, const char *uses) {
  aoth_session_config_t config = {0};
  aoth_text_t yaml = {0};
  char path[128];
  memset(c, 0, sizeof *c);
  snprintf(c->folder, sizeof c->folder, "/tmp/differXXXXXX");
  c->sink = aoth_sink_create(NULL);
  aoth_text_z(&yaml, "aot: 1\nmodel: {import: ir, path: program.ir}\nstages:\n");
  for (int n; *uses; uses += n + (uses[n] == ' ')) {
    n = (int)strcspn(uses, " ");
    aoth_text_f(&yaml, "  - use: %.*s\n", n, uses);
  }
  int ok = c->sink && mkdtemp(c->folder) && put_file(c->folder, "program.ir", ir) && put_file(c->folder, "p.yaml", yaml.data);
  aoth_text_deinit(&yaml);
  snprintf(path, sizeof path, "%s/p.yaml", c->folder);
  config.sink = c->sink;
  ok = ok && aoth_pipeline_load(path, NULL, c->sink, &c->pipeline) == AOT_OK && (c->session = aoth_session_create(&config)) != NULL;
  ok = ok && aoth_pipeline_check(c->session, c->pipeline) == AOT_OK && aoth_pipeline_import(c->session, c->pipeline) == AOT_OK;
  ok = ok && aoth_pipeline_run_stages(c->session, c->pipeline, 0) == AOT_OK;
  aoth_exec_t run = {.self = c->session, .run = exec};
  return ok && aoth_step_create(aoth_session_prog(c->session), &run, c->sink, &c->step) == AOT_OK;
}

static void close_compiled(compiled_t *c) {
  aoth_step_destroy(c->step);
  if (c->session) aoth_session_destroy(c->session);
  aoth_pipeline_destroy(c->pipeline);
  aoth_sink_destroy(c->sink);
  drop_file(c->folder, "program.ir");
  drop_file(c->folder, "p.yaml");
  rmdir(c->folder);
}

/* ---- comparing ---- */

static aoth_tensor_t as_tensor(void *storage, int numel, const eg_shape_t *t) {
  aoth_tensor_t r = {.data = storage, .nbytes = (uint64_t)numel * 8, .dtype = AOT_F64, .rank = t->rank, .offset = t->offset};
  for (int d = 0; d < t->rank; d++) r.sizes[d] = t->size[d], r.strides[d] = t->stride[d];
  return r;
}

static int near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * (1 + fabs(b)); }

static int same_numbers(const aoth_tensor_t *got, const eg_world_t *w, const eg_tensor_t *want) {
  aoth_walk_t walk;
  aoth_tensor_t shape = as_tensor(NULL, 0, &want->at);
  if (got->rank != shape.rank || !aoth_tensor_same_sizes(got, &shape)) return 0;
  aoth_walk_begin(&walk, got, NULL);
  for (int64_t i = 0; walk.left > 0; i++, aoth_walk_next(&walk))
    if (!near(aoth_tensor_load(AOT_F64, walk.at[0]), w->number[want->storage][eg_position(&want->at, i)], 1e-10)) return 0;
  return 1;
}

/* What shared a storage shares one, at the same distance, with the same strides. */
static int same_alias(const aoth_tensor_t *g, const aoth_tensor_t *h, const eg_tensor_t *a, const eg_tensor_t *b) {
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

static int compare_values(const compiled_t *c, const eg_program_t *p, const eg_world_t *w, char *why, size_t size) {
  result_t r = {.n = 0};
  for (int i = 0; i < p->n_outputs + p->n_inputs; i++) {
    int k = i < p->n_outputs ? i : i - p->n_outputs;
    char key[32];
    snprintf(key, sizeof key, i < p->n_outputs ? "output.%d" : "input_after.%d", k);
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

static double tangent(int output, int64_t element) { return 0.25 + 0.5 * cos(1.0 + 3.0 * output + 0.7 * (double)element); }

/* The sum of outputs weighed by the tangents: its number or its derivative. */
static double weighed(const eg_program_t *p, const eg_world_t *w, int derivative) {
  double sum = 0;
  for (int k = 0; k < p->n_outputs; k++) {
    const eg_tensor_t *t = eg_value(w, p->output[k]);
    for (int64_t i = 0; i < eg_count(&t->at); i++) {
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

static int hides_gradients(const eg_program_t *p) {
  for (int i = 0; i < p->n_steps; i++)
    if (p->step[i].no_grad || p->step[i].op == EG_DETACH || p->step[i].op == EG_DETACH_) return 1;
  return 0;
}

static double product_with_direction(const compiled_t *c, const eg_program_t *p) {
  double sum = 0;
  for (int k = 0; k < p->n_inputs; k++) {
    char key[32];
    aoth_tensor_t g;
    aoth_walk_t walk;
    snprintf(key, sizeof key, "grad.input.%d", k);
    if (!p->input[k].requires_grad || !aoth_step_get(c->step, key, &g)) continue;
    aoth_walk_begin(&walk, &g, NULL);
    for (int64_t i = 0; walk.left > 0; i++, aoth_walk_next(&walk))
      sum += aoth_tensor_load(AOT_F64, walk.at[0]) * p->input[k].direction[eg_position(&p->input[k].at, i)];
  }
  return sum;
}

static int compare_gradients(const compiled_t *c, const eg_program_t *p, const eg_world_t *w, char *why, size_t size) {
  static double storage[8][EG_NUMEL];
  aoth_tensor_t given[8];
  const aoth_tensor_t *tangents[8];
  double want = weighed(p, w, 1), h = 1e-6, slope = (shifted(p, h) - shifted(p, -h)) / (2 * h);
  for (int k = 0; k < p->n_outputs; k++) {
    eg_shape_t shape = eg_value(w, p->output[k])->at;
    given[k] = as_tensor(storage[k], (int)eg_count(&shape), &shape);
    aoth_tensor_contiguous(&given[k]);
    for (int64_t i = 0; i < eg_count(&shape); i++) storage[k][i] = tangent(k, i);
    tangents[k] = &given[k];
  }
  if (!hides_gradients(p) && !near(slope, want, 1e-5)) {
    snprintf(why, size, "the eager derivative is %.9g, finite differences say %.9g", want, slope);
    return 0;
  }
  if (aoth_step_backward(c->step, tangents, (uint32_t)p->n_outputs) != AOT_OK) {
    snprintf(why, size, "the backward fails: %s", aoth_sink_text(c->sink));
    return 0;
  }
  if (near(product_with_direction(c, p), want, 1e-9)) return 1;
  snprintf(why, size, "derivative along the direction: %.9g, eagerly %.9g", product_with_direction(c, p), want);
  return 0;
}

/* ---- one program ---- */

static int run_inputs(compiled_t *c, const eg_program_t *p, char *why, size_t size) {
  static double storage[4][EG_NUMEL];
  aoth_tensor_t inputs[5];
  int64_t two = 2, index[2] = {p->index[0], p->index[1]};
  for (int i = 0; i < p->n_inputs; i++) {
    memcpy(storage[i], p->input[i].data, sizeof storage[i]);
    inputs[i] = as_tensor(storage[i], p->input[i].numel, &p->input[i].at);
  }
  inputs[p->n_inputs] = aoth_tensor_make(index, AOT_I64, 1, &two);
  if (aoth_step_forward(c->step, inputs, (uint32_t)p->n_inputs + 1) == AOT_OK) return 1;
  snprintf(why, size, "running fails: %s", aoth_sink_text(c->sink));
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

static int check_compiled(compiled_t *c, int kind, const eg_program_t *p, const eg_world_t *w, char *why, size_t size) {
  static eg_world_t larger;
  eg_program_t q;
  if (!run_inputs(c, p, why, size) || !compare_values(c, p, w, why, size)) return 0;
  if (kind == GRADIENTS) return compare_gradients(c, p, w, why, size);
  if (kind != SYMBOLIC || !resized(p, &q, &larger)) return 1;
  return run_inputs(c, &q, why, size) && compare_values(c, &q, &larger, why, size);
}

/* 1: agrees, 0: why not. p has been run in w. */
static int check(int kind, const eg_program_t *p, const eg_world_t *w, char *why, size_t size, int *out_refused) {
  compiled_t c;
  aoth_text_t ir = {0};
  eg_print(p, w, kind == SYMBOLIC, &ir);
  int ok = compile(&c, ir.data, stages[kind]);
  if (!ok) snprintf(why, size, "it does not compile: %s", aoth_sink_text(c.sink));
  int refused = !ok && (strstr(why, "a write through aten.expand") || strstr(why, "derivative of as_strided") ||
                         strstr(why, "functionalize.storage")); /* what is not supported */
  ok = ok && check_compiled(&c, kind, p, w, why, size);
  close_compiled(&c);
  aoth_text_deinit(&ir);
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
    if (i == victim || map[s.a] < 0 || (s.b >= 0 && map[s.b] < 0)) continue;
    s.a = map[s.a];
    if (s.b >= 0) s.b = map[s.b];
    for (int r = 0; r < s.n_results; r++) map[s.first + r] = n++;
    out->step[out->n_steps++] = s;
  }
  for (int k = 0; k < p->n_outputs; k++)
    if (map[p->output[k]] >= 0 && victim != p->n_steps + k) out->output[out->n_outputs++] = map[p->output[k]];
  return out->n_outputs > 0;
}

static void reduce(int kind, eg_program_t *p, eg_world_t *w, char *why, size_t size) {
  eg_program_t smaller;
  for (int victim = p->n_steps + p->n_outputs - 1; victim >= 0; victim--) {
    char reason[1024] = "";
    int refused = 0;
    if (!without(p, victim, &smaller) || !eg_run(w, &smaller)) continue;
    if (check(kind, &smaller, w, reason, sizeof reason, &refused)) continue;
    if (strstr(reason, "nothing-to-differentiate")) continue;
    *p = smaller;
    snprintf(why, size, "%s", reason);
    victim = p->n_steps + p->n_outputs;
  }
  eg_run(w, p);
}

static int try_one(int kind, uint64_t seed, int *out_refused) {
  static eg_world_t w;
  static eg_program_t p;
  random_t r = {seed * UINT64_C(0x9E3779B97F4A7C15) + 0x1234567};
  aoth_text_t ir = {0};
  char why[2048] = "";
  for (int i = 0; i < 8; i++) next(&r);
  generate(&r, kind, &p, &w);
  if (!eg_run(&w, &p) || check(kind, &p, &w, why, sizeof why, out_refused)) return 1;
  reduce(kind, &p, &w, why, sizeof why);
  eg_print(&p, &w, kind == SYMBOLIC, &ir);
  printf("FAILED seed %llu, stages %s: %s\n%s\n", (unsigned long long)seed, stages[kind], why, ir.data);
  aoth_text_deinit(&ir);
  return 0;
}

int main(int argc, char **argv) {
  uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 500, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n_failed = 0;
  uint64_t n_refused = 0;
  for (uint64_t i = 0; i < count && n_failed < 20; i++) {
    int refused = 0;
    n_failed += !try_one((int)((seed + i) % N_KINDS), seed + i, &refused);
    n_refused += (uint64_t)refused;
  }
  printf("%llu programs, %llu failed, %llu refused\n", (unsigned long long)count, (unsigned long long)n_failed, (unsigned long long)n_refused);
  return n_failed != 0 || n_refused * 50 > count + 50;
}
