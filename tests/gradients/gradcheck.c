/* Every rule of gradcheck.def against finite differences.
 *
 * A row is a program in float64: inputs with the range of their numbers, then nodes of the text form. The outputs of
 * its last node are its user outputs. With random tangents t, L(x) = sum <y_k(x), t_k> is differentiated by the plugin,
 * and by (L(x + h) - L(x - h)) / 2h in every element of every float input. Both run on backend-ref.
 *
 * Each row runs again with its inputs stored with strides. A row of one pointwise operator also runs with other shapes:
 * no dimension, size 1, size 0, broadcasting both ways. ALSO rows are the row above with other inputs.
 *
 * POINT rows give the inputs and the gradients for tangents of 1: places where finite differences say nothing, and
 * PyTorch has decided.
 *
 * gradcheck [-v] [NAME..] runs the rows whose operator contains one of the names; -v prints the joint programs. */
#include <aot/inline.h>
#include <ctype.h>
#include <math.h>
#include <trainer/tensors/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grad_harness.h"

#define MAX_INPUTS 8
#define STEP 1e-5
#define RTOL 1e-6
#define ATOL 1e-7

#define FIXED_STRIDES 1
#define FIXED_SHAPES 2

typedef struct grad_case {
  const char *op, *inputs, *body;
  const char *expected; /* NULL: finite differences */
  const char *regions;  /* graphs that the nodes name; NULL: none */
  int fixed;            /* FIXED_STRIDES, FIXED_SHAPES: what is not varied */
} grad_case_t;

static const grad_case_t CASES[] = {
#define CASE(op, inputs, body) {op, inputs, body, NULL, NULL, 0},
#define ALSO(inputs) {NULL, inputs, NULL, NULL, NULL, 0},
#define DENSE(op, inputs, body) {op, inputs, body, NULL, NULL, FIXED_STRIDES},
#define SHAPED(op, inputs, body) {op, inputs, body, NULL, NULL, FIXED_SHAPES},
#define POINT(op, inputs, body, expected) {op, inputs, body, expected, NULL, 0},
#define REGIONS(op, regions, inputs, body) {op, inputs, body, NULL, regions, 0},
#define UNCHECKED(op, why)
#include "gradcheck.def"
#undef CASE
#undef ALSO
#undef DENSE
#undef SHAPED
#undef POINT
#undef REGIONS
#undef UNCHECKED
};

/* Rules that cannot be checked here, and why. */
static const char *const EXEMPT[] = {
#define CASE(op, inputs, body)
#define ALSO(inputs)
#define DENSE(op, inputs, body)
#define SHAPED(op, inputs, body)
#define POINT(op, inputs, body, expected)
#define REGIONS(op, regions, inputs, body)
#define UNCHECKED(op, why) op,
#include "gradcheck.def"
#undef CASE
#undef ALSO
#undef DENSE
#undef SHAPED
#undef POINT
#undef REGIONS
#undef UNCHECKED
    NULL};

static const char *const RULES[] = {
#define FORMULA(op, text) op,
#define CODE(op, covers, fn) op,
#define ONLY_IF(op, when)
#define FIRST_RESULT(op)
#define PREPARED(op, prepare)
#include "../../plugins/autograd/rules.def"
};

/* Rules that hold for complex numbers. */
static const char *const COMPLEX_RULES[] = {
#define AS_IT_STANDS(op) op,
#define CONJUGATED(op) op,
#define CONJUGATED_AS(op, text) op,
#define COMPLEX_AS(op, text) op,
#include "../../plugins/autograd/complex_rules.def"
#undef AS_IT_STANDS
#undef CONJUGATED
#undef CONJUGATED_AS
#undef COMPLEX_AS
};

/* How a row is varied. */
enum { AS_WRITTEN, STRIDED, FIRST_SHAPE };
static const char *const SHAPES[][3] = {
    /* of the inputs in turn; all of them broadcast with each other */
    {"[]", "[]", "[]"},
    {"[1]", "[1]", "[1]"},
    {"[2, 0]", "[1]", "[2, 1]"},
    {"[2, 1, 3]", "[4, 1]", "[3]"},
    {"[3]", "[2, 1, 3]", "[2, 4, 1]"},
};
#define N_VARIANTS (FIRST_SHAPE + (int)(sizeof SHAPES / sizeof *SHAPES))

/* "x f64[2, 3] -1 1": name, type, range; "x f64[2] = 1 2": numbers; "x! ..": no gradient is requested */
typedef struct input {
  char name[16], type[128];
  const char *numbers; /* NULL: random */
  double low, high;
  int wants;
  aoth_tensor_t t;
} input_t;

static uint32_t read_inputs(const char *text, input_t *out) {
  uint32_t n = 0;
  while (*text && n < MAX_INPUTS) {
    input_t *x = &out[n++];
    size_t k = strcspn(text, " "), end;
    memset(x, 0, sizeof *x);
    x->wants = text[k - 1] != '!';
    snprintf(x->name, sizeof x->name, "%.*s", (int)(k - (size_t)!x->wants), text);
    text += k + 1;
    end = strcspn(text, "]") + 1;
    snprintf(x->type, sizeof x->type, "%.*s", (int)end, text);
    text += end;
    x->low = *x->type == 'f' ? -1.5 : 0;
    x->high = *x->type == 'f' ? 1.5 : 2;
    if (*x->type != 'f') x->wants = 0;
    if (strncmp(text, " =", 2) == 0) {
      x->numbers = text + 2;
      text += strcspn(text, ";");
    } else if (*text == ' ') {
      char *after;
      x->low = strtod(text, &after);
      x->high = strtod(after, &after);
      text = after;
    }
    while (*text == ';' || *text == ' ') text++;
  }
  return n;
}

/* "f64[2, 3]" in columns, every other place: "f64[2, 3] strides [2, 4]". */
static void put_strides(input_t *x) {
  const char *at = strchr(x->type, '[') + 1;
  kit_text_t strides = {0};
  long stride = 2;
  while (*at != ']') {
    char *after;
    long size = strtol(at, &after, 10);
    kit_text_f(&strides, "%s%ld", strides.size ? ", " : " strides [", stride);
    stride *= size > 1 ? size : 1;
    at = after + strspn(after, ", ");
  }
  if (strides.size) snprintf(x->type + strlen(x->type), sizeof x->type - strlen(x->type), "%s]", strides.data);
  kit_text_deinit(&strides);
}

static void vary(input_t *in, uint32_t n, int variant) {
  for (uint32_t i = 0; i < n; i++) {
    if (variant == STRIDED) put_strides(&in[i]);
    else if (variant >= FIRST_SHAPE) snprintf(strchr(in[i].type, '['), 32, "%s", SHAPES[variant - FIRST_SHAPE][i % 3]);
  }
}

/* The results of the last node: "%y, %z = .." */
static void put_outputs(const char *body, kit_text_t *ir) {
  const char *last = strrchr(body, ';'), *at = last ? last + 1 : body, *end = strchr(at, '=');
  int k = 0;
  while ((at = strchr(at, '%')) && at < end) {
    size_t n = 1 + strcspn(at + 1, ", =");
    kit_text_f(ir, "  out user_output %d = %.*s\n", k++, (int)n, at);
    at += n;
  }
}

static void put_body(const char *body, kit_text_t *ir) {
  while (*body) {
    size_t n = strcspn(body, ";");
    kit_text_f(ir, "  %.*s\n", (int)n, body);
    body += n;
    while (*body == ';' || *body == ' ') body++;
  }
}

static void put_program(const grad_case_t *c, const input_t *in, uint32_t n, kit_text_t *ir) {
  kit_text_f(ir, "aot 1\nproperties imported functional\n\n");
  for (uint32_t i = 0; i < n; i++)
    kit_text_f(ir, "leaf %u user_input %u \"%s\" : %s%s\n", i, i, in[i].name, in[i].type, in[i].wants ? " grad" : "");
  if (c->regions) kit_text_f(ir, "\n%s", c->regions);
  kit_text_f(ir, "\ngraph @main forward {\n");
  for (uint32_t i = 0; i < n; i++)
    kit_text_f(ir, "  in %%%s = user_input %u : %s%s\n", in[i].name, i, in[i].type, in[i].wants ? " grad" : "");
  put_body(c->body, ir);
  put_outputs(c->body, ir);
  kit_text_f(ir, "}\n");
}

static aoth_tensor_t new_tensor(const aot_type_t *t) {
  aoth_tensor_t r = aoth_tensor_make(NULL, t->dtype, t->rank, t->sizes);
  int64_t places = 1;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->strides) r.strides[d] = t->strides[d];
    places += t->sizes[d] > 0 ? (t->sizes[d] - 1) * r.strides[d] : 0;
  }
  r.nbytes = (uint64_t)places * aot_dtype_size(t->dtype);
  r.data = calloc(1, r.nbytes + 8);
  return r;
}

/* The i-th element in row-major order. */
static void *element(const aoth_tensor_t *t, int64_t i) {
  int64_t at = t->offset;
  for (int32_t d = t->rank; d-- > 0; i /= t->sizes[d]) at += i % t->sizes[d] * t->strides[d];
  return (char *)t->data + (uint64_t)at * aot_dtype_size(t->dtype);
}

static void fill(input_t *x, const aot_type_t *type, aoth_random_t *r) {
  const char *at = x->numbers;
  char *after;
  x->t = new_tensor(type);
  for (int64_t i = 0; i < aoth_tensor_numel(&x->t); i++) {
    double u = x->low + (x->high - x->low) * aoth_random_unit(r);
    if (at) {
      u = strtod(at, &after);
      at = after;
    }
    kit_element_store(type->dtype, element(&x->t, i), aot_dtype_is_float(type->dtype) ? u : floor(u));
  }
}

typedef struct check {
  gh_prog_t prog;
  const grad_case_t *c;
  input_t in[MAX_INPUTS];
  uint32_t n_in, n_out;
  aoth_tensor_t tangents[16];
  char why[512];
} check_t;

static aot_status_t forward(check_t *k) {
  aoth_tensor_t t[MAX_INPUTS];
  for (uint32_t i = 0; i < k->n_in; i++) t[i] = k->in[i].t;
  return aoth_step_forward(k->prog.step, t, k->n_in);
}

/* L at the present inputs. */
static double value(check_t *k) {
  double sum = 0;
  if (forward(k) != AOT_OK) return NAN;
  for (uint32_t o = 0; o < k->n_out; o++) {
    char key[32];
    aoth_tensor_t y;
    aoth_walk_t w;
    if (!k->tangents[o].data) continue;
    snprintf(key, sizeof key, "output.%u", o);
    if (!aoth_step_get(k->prog.step, key, &y)) return NAN;
    for (aoth_walk_begin(&w, &y, &k->tangents[o]); w.left; aoth_walk_next(&w))
      sum += kit_element_load(y.dtype, w.at[0]) * kit_element_load(AOT_F64, w.at[1]);
  }
  return sum;
}

static int compare_input(check_t *k, uint32_t i, const double *gradient) {
  for (int64_t e = 0; e < aoth_tensor_numel(&k->in[i].t); e++) {
    double *x = element(&k->in[i].t, e), saved = *x, up, down, want;
    *x = saved + STEP;
    up = value(k);
    *x = saved - STEP;
    down = value(k);
    *x = saved;
    want = (up - down) / (2 * STEP);
    if (fabs(gradient[e] - want) <= ATOL + RTOL * fabs(want)) continue;
    snprintf(k->why, sizeof k->why, "gradient of %s, element %lld: %.9g, finite difference %.9g", k->in[i].name,
             (long long)e, gradient[e], want);
    return 0;
  }
  return 1;
}

static int is_near(double got, double want) {
  if (isnan(want)) return isnan(got);
  return got == want || (isfinite(want) && fabs(got - want) <= 1e-12 + 1e-7 * fabs(want));
}

/* The numbers of one input's gradient, from `*at` on: "0.5 0; 1 nan". */
static int compare_point(check_t *k, uint32_t i, const double *gradient, const char **at) {
  for (int64_t e = 0; e < aoth_tensor_numel(&k->in[i].t); e++) {
    char *after;
    double want = strtod(*at, &after);
    if (after == *at) snprintf(k->why, sizeof k->why, "the row gives too few numbers");
    else if (!is_near(gradient[e], want))
      snprintf(k->why, sizeof k->why, "gradient of %s, element %lld: %.9g, should be %.9g", k->in[i].name, (long long)e,
               gradient[e], want);
    if (*k->why) return 0;
    *at = after;
  }
  *at += strspn(*at, "; ");
  return 1;
}

/* A contiguous copy of grad.input.I; NULL: the program has none. */
static double *take_gradient(check_t *k, uint32_t i) {
  char key[32];
  aoth_tensor_t g, copy;
  snprintf(key, sizeof key, "grad.input.%u", i);
  if (!aoth_step_get(k->prog.step, key, &g) || g.dtype != AOT_F64) return NULL;
  if (!aoth_tensor_same_sizes(&g, &k->in[i].t)) return NULL;
  copy = aoth_tensor_make(calloc(1, (uint64_t)aoth_tensor_numel(&g) * 8 + 8), AOT_F64, g.rank, g.sizes);
  copy.nbytes = (uint64_t)aoth_tensor_numel(&g) * 8;
  aoth_tensor_copy(&copy, &g);
  return copy.data;
}

static void make_tangents(check_t *k, aoth_random_t *r) {
  k->n_out = aoth_step_n_outputs(k->prog.step);
  for (uint32_t o = 0; o < k->n_out; o++) {
    char key[32];
    aoth_tensor_t y;
    if (!aoth_step_takes_tangent(k->prog.step, o)) continue;
    snprintf(key, sizeof key, "output.%u", o);
    if (!aoth_step_get(k->prog.step, key, &y)) continue;
    aot_type_t type = {.dtype = y.dtype, .rank = y.rank, .sizes = y.sizes};
    k->tangents[o] = new_tensor(&type);
    for (int64_t e = 0; e < aoth_tensor_numel(&y); e++)
      kit_element_store(y.dtype, element(&k->tangents[o], e), k->c->expected ? 1 : 0.5 + aoth_random_unit(r));
  }
}

static int run(check_t *k) {
  aoth_random_t random;
  const aoth_tensor_t *tangents[16] = {0};
  double *gradients[MAX_INPUTS] = {0};
  const char *expected = k->c->expected;
  int ok = 1;
  aoth_random_seed(&random, 20240607);
  for (uint32_t i = 0; i < k->n_in; i++) fill(&k->in[i], &aoth_step_input(k->prog.step, i)->type, &random);
  if (forward(k) != AOT_OK) return 0;
  make_tangents(k, &random);
  for (uint32_t o = 0; o < k->n_out; o++) tangents[o] = k->tangents[o].data ? &k->tangents[o] : NULL;
  if (aoth_step_backward(k->prog.step, tangents, k->n_out) != AOT_OK) return 0;
  for (uint32_t i = 0; i < k->n_in && ok; i++) {
    if (!k->in[i].wants) continue;
    gradients[i] = take_gradient(k, i);
    if (!gradients[i]) snprintf(k->why, sizeof k->why, "no gradient of %s", k->in[i].name);
    ok = gradients[i] != NULL;
  }
  for (uint32_t i = 0; i < k->n_in && ok; i++)
    if (gradients[i]) ok = expected ? compare_point(k, i, gradients[i], &expected) : compare_input(k, i, gradients[i]);
  for (uint32_t i = 0; i < k->n_in; i++) free(gradients[i]);
  return ok;
}

/* One node of an operator that computes each element from those of its place. */
static int is_pointwise(const check_t *k) {
  const char *name = strstr(k->c->body, "= ");
  const aoth_ops_t *ops;
  char op[128];
  aot_op_t id;
  if (!name || strchr(k->c->body, ';') || k->c->regions) return 0;
  snprintf(op, sizeof op, "%.*s", (int)strcspn(name + 2, " "), name + 2);
  ops = aoth_session_ops(k->prog.session);
  id = aoth_ops_find(ops, aot_str(op));
  return id.id != AOT_NO_ID && (aoth_ops_desc(ops, id)->flags & AOT_OP_POINTWISE) != 0;
}

/* *out_pointwise: whether the row can take other shapes. */
static int check_case(const grad_case_t *c, int variant, int verbose, const char *stages, int *out_pointwise) {
  check_t *k = calloc(1, sizeof *k);
  kit_text_t ir = {0};
  int ok;
  k->c = c;
  k->n_in = read_inputs(c->inputs, k->in);
  vary(k->in, k->n_in, variant);
  put_program(c, k->in, k->n_in, &ir);
  ok = gh_open(&k->prog, ir.data, stages);
  if (ok && verbose) {
    kit_text_t text = {0};
    gh_print(&k->prog, &text);
    printf("%s\n", text.data);
    kit_text_deinit(&text);
  }
  if (ok && k->prog.step) ok = run(k);
  if (!ok)
    printf("FAILED %s  (%s)\n%s%s%s\n%s\n", c->op, c->body, k->why, k->prog.why,
           *k->prog.why ? "" : aoth_sink_text(k->prog.sink), variant == AS_WRITTEN ? "" : ir.data);
  *out_pointwise = ok && is_pointwise(k);
  for (uint32_t i = 0; i < k->n_in; i++) *out_pointwise = *out_pointwise && !k->in[i].numbers;
  for (uint32_t i = 0; i < k->n_in; i++) free(k->in[i].t.data);
  for (uint32_t o = 0; o < 16; o++) free(k->tangents[o].data);
  gh_close(&k->prog);
  kit_text_deinit(&ir);
  free(k);
  return ok;
}

/* A row, and what can be made of it. Returns how many programs failed. */
static uint32_t check_row(const grad_case_t *c, int verbose, const char *stages, uint32_t *n) {
  int pointwise, ignored;
  uint32_t n_failed = !check_case(c, AS_WRITTEN, verbose, stages, &pointwise);
  ++*n;
  for (int v = STRIDED; v < N_VARIANTS && !c->expected && !c->regions; v++) {
    if (v == STRIDED ? c->fixed & FIXED_STRIDES : !pointwise || c->fixed & FIXED_SHAPES) continue;
    n_failed += !check_case(c, v, verbose, stages, &ignored);
    ++*n;
  }
  return n_failed;
}

/* "aten.add.Tensor" is "add.Tensor" in the table of cases, "aten.abs.default" is "abs". */
static int is_op(const char *op, const char *name) {
  size_t n = strlen(name);
  if (strncmp(op, "aten.", 5) == 0) op += 5;
  return strncmp(op, name, n) == 0 && (op[n] == '\0' || strcmp(op + n, ".default") == 0);
}

static int has_complex(const grad_case_t *c) { return strstr(c->body, "view_as_") != NULL; }

/* Every rule has a case, or says why not; one that holds for complex numbers has a case of them. */
static uint32_t check_coverage(const char *const *rules, size_t n, int complex_too, const char *kind) {
  uint32_t n_missing = 0;
  for (size_t i = 0; i < n; i++) {
    int found = 0;
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES && !found; k++)
      found = CASES[k].op && is_op(rules[i], CASES[k].op) && (!complex_too || has_complex(&CASES[k]));
    for (size_t k = 0; EXEMPT[k] && !found; k++) found = is_op(rules[i], EXEMPT[k]);
    if (!found) printf("FAILED %s has a %srule and no case in gradcheck*.def\n", rules[i], kind);
    n_missing += !found;
  }
  return n_missing;
}

static int selected(const char *op, int argc, char **argv) {
  int any = 0;
  for (int i = 1; i < argc; i++) {
    if (*argv[i] == '-') continue;
    any = 1;
    if (strstr(op, argv[i])) return 1;
  }
  return !any;
}

int main(int argc, char **argv) {
  uint32_t n = 0, n_failed = check_coverage(RULES, sizeof RULES / sizeof *RULES, 0, "") +
                             check_coverage(COMPLEX_RULES, sizeof COMPLEX_RULES / sizeof *COMPLEX_RULES, 1, "complex ");
  size_t above = 0; /* the row that ALSO rows repeat */
  int verbose = 0;
  const char *stages = "autograd partition-default backend-ref";
  for (int i = 1; i < argc; i++) {
    verbose |= strcmp(argv[i], "-v") == 0;
    if (strcmp(argv[i], "-j") == 0) stages = "autograd"; /* the joint program only */
  }
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    grad_case_t c = CASES[i];
    if (c.op) above = i;
    c.op = CASES[above].op;
    if (!c.body) c.body = CASES[above].body;
    if (!selected(c.op, argc, argv)) continue;
    n_failed += check_row(&c, verbose, stages, &n);
  }
  printf("%u programs, %u failed\n", n, n_failed);
  return n_failed != 0;
}
