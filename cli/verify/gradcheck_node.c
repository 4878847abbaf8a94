#include <cli/verify/gradcheck.h>

#include <aot/inline.h>
#include <math.h>
#include <sandbox/call.h>
#include <trainer/tensors/random.h>
#include <step/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/child.h>
#include <trainer/trial/oracle.h>

#define N_STEPS 4
static const double steps[N_STEPS] = {
    1e-4, 1e-5, 1e-6, 1e-7}; /* relative to an element, or to the operand's small elements if it is smaller */

#define NEXT_TO 1e-2 /* how far the second point is from the given values, relative as the steps */
#define CLEAR 0.1    /* a deviation is an error if what the differences disagree by is less than this share of it */

enum { AGREES, DIFFERS, UNCLEAR };
static const char *const verdicts[] = {"ok", "wrong", "unclear"};

/* One operand at one point. */
typedef struct verdict {
  int end;
  double deviation;              /* |derivative - difference| relative to the larger, or to the gradient's norm */
  double derivative, difference; /* along the direction: of the product, and by central differences */
} verdict_t;

typedef struct checker {
  aoth_gradcheck_t *g;
  aot_node_t node;
  aoth_gradcheck_case_t c;
  aoth_step_t *step;
  aoth_tensor_t *inputs;
  aoth_tensor_t *tangents; /* n_outputs; data NULL: none is taken */
  uint32_t n_outputs;
  aoth_random_t random;
  double magnitude; /* sum of |result * cotangent|: the rounding error of L is relative to it */
} checker_t;

static aot_status_t exec(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                         uint64_t *known) {
  return aoth_session_run_exe(self, what, symbols, open, known);
}

/* ---- the function ---- */

static aot_status_t forward(checker_t *k) {
  aoth_step_seed(k->step, (int64_t)k->g->seed, 0); /* equal draws at every point */
  return aoth_step_forward(k->step, k->inputs, k->c.n_operands);
}

static aot_status_t evaluate(checker_t *k, double *out) {
  AOT_TRY(forward(k));
  *out = k->magnitude = 0;
  for (uint32_t o = 0; o < k->n_outputs; o++) {
    char key[32];
    aoth_tensor_t y;
    aoth_walk_t w;
    snprintf(key, sizeof key, "output.%u", o);
    if (!k->tangents[o].data || !aoth_step_get(k->step, key, &y)) continue;
    for (aoth_walk_begin(&w, &y, &k->tangents[o]); w.left > 0; aoth_walk_next(&w)) {
      const double tangent = kit_element_load(AOT_F64, w.at[1]);
      if (tangent == 0) continue; /* of an element that is not finite */
      const double term = kit_element_load(y.dtype, w.at[0]) * tangent;
      *out += term;
      k->magnitude += fabs(term);
    }
  }
  return AOT_OK;
}

/* Normal cotangents for the results that take one; *out_n of them. After a forward. */
static aot_status_t make_tangents(checker_t *k, uint32_t *out_n) {
  *out_n = 0;
  for (uint32_t o = 0; o < k->n_outputs; o++) {
    char key[32];
    aoth_tensor_t y;
    snprintf(key, sizeof key, "output.%u", o);
    if (!aoth_step_takes_tangent(k->step, o) || !aoth_step_get(k->step, key, &y) || y.dtype != AOT_F64) continue;
    k->tangents[o] = aoth_tensor_make(NULL, AOT_F64, y.rank, y.sizes);
    k->tangents[o].data = calloc(1, (size_t)k->tangents[o].nbytes + 8);
    if (!k->tangents[o].data) return AOT_E_EXHAUSTED;
    aoth_walk_t w;
    for (aoth_walk_begin(&w, &k->tangents[o], &y); w.left > 0; aoth_walk_next(&w))
      kit_element_store(AOT_F64, w.at[0],
                        isfinite(kit_element_load(AOT_F64, w.at[1])) ? aoth_random_normal(&k->random) : 0);
    ++*out_n;
  }
  return AOT_OK;
}

static aot_status_t read_gradients(checker_t *k) {
  for (uint32_t i = 0; i < k->c.n_operands; i++) {
    aoth_gradcheck_operand_t *o = &k->c.operands[i];
    char key[32];
    aoth_tensor_t g, own;
    if (!o->needs) continue;
    memset(o->gradient, 0, (size_t)o->tensor.nbytes);
    snprintf(key, sizeof key, "grad.input.%u", i);
    if (!aoth_step_get(k->step, key, &g) || g.dtype != AOT_F64 || !aoth_tensor_same_sizes(&g, &o->tensor)) continue;
    own = aoth_tensor_make(o->gradient, AOT_F64, g.rank, g.sizes);
    aoth_tensor_copy(&own, &g);
  }
  return AOT_OK;
}

/* ---- a point ---- */

static void move(aoth_gradcheck_operand_t *o, double h) {
  double *x = o->tensor.data;
  for (int64_t i = 0, n = aoth_tensor_numel(&o->tensor); i < n; i++) x[i] = o->x[i] + h * o->direction[i];
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The least that an element moves: a tenth of the elements that are not 0 are smaller; at most 1. Not the mean: masks
 * put -3e38 next to scores of 1. Uses o->gradient as room. */
static double least_size(const aoth_gradcheck_operand_t *o) {
  int64_t n = 0;
  for (int64_t i = 0; i < aoth_tensor_numel(&o->tensor); i++)
    if (isfinite(o->x[i]) && o->x[i] != 0) o->gradient[n++] = fabs(o->x[i]);
  if (!n) return 1;
  qsort(o->gradient, (size_t)n, sizeof *o->gradient, ascending);
  return fmin(o->gradient[n / 10], 1);
}

static double size_of(double x, double least) { return isfinite(x) ? fmax(fabs(x), least) : 0; }

/* Is |derivative - difference| rounding error, or within the tolerance? */
static verdict_t judge(checker_t *k, aoth_gradcheck_operand_t *o, double at) {
  const int64_t n = aoth_tensor_numel(&o->tensor);
  verdict_t best = {.end = UNCLEAR, .deviation = INFINITY};
  double norm = 0, last = NAN;
  int is_wrong = 0;
  for (int64_t i = 0; i < n; i++) {
    const double term = o->gradient[i] * o->direction[i];
    best.derivative += term;
    norm += term * term;
  }
  norm = sqrt(norm);
  for (int s = 0; s < N_STEPS; s++) {
    const double h = steps[s];
    double up = NAN, down = NAN;
    move(o, h);
    if (evaluate(k, &up) != AOT_OK) up = NAN;
    move(o, -h);
    if (evaluate(k, &down) != AOT_OK) down = NAN;
    move(o, 0);
    const double d = (up - down) / (2 * h), bend = (up - 2 * at + down) / h, noise = 64 * 0x1p-52 * k->magnitude / h;
    const double gap = fabs(best.derivative - d), scale = fmax(fmax(fabs(best.derivative), fabs(d)), norm);
    if (!isfinite(gap)) continue;
    const double deviation = scale > noise ? gap / scale : 0;
    if (!(deviation >= best.deviation)) best.deviation = deviation, best.difference = d;
    if (gap <= k->g->tolerance * scale + noise && (noise <= 10 * k->g->tolerance * scale || scale <= noise)) {
      best.end = AGREES;
      return best;
    }
    is_wrong |= fabs(d - last) + fabs(bend) + noise < CLEAR * gap;
    last = d;
  }
  if (is_wrong) best.end = DIFFERS;
  return best;
}

/* Gradients at the point that the operands hold, each checked. *out_is_finite 0: the results are not. */
static aot_status_t check_point(checker_t *k, const aoth_tensor_t *const *tangents, verdict_t *out,
                                int *out_is_finite) {
  double at;
  AOT_TRY(evaluate(k, &at));
  *out_is_finite = isfinite(at);
  if (!*out_is_finite) return AOT_OK;
  if (aoth_step_has(k->step, AOT_GRAPH_BACKWARD)) AOT_TRY(aoth_step_backward(k->step, tangents, k->n_outputs));
  AOT_TRY(read_gradients(k));
  for (uint32_t i = 0; i < k->c.n_operands; i++)
    if (k->c.operands[i].needs) out[i] = judge(k, &k->c.operands[i], at);
  return AOT_OK;
}

/* A point next to the given one: away from zeros and ties. What is nowhere negative stays so. */
static void step_aside(checker_t *k) {
  for (uint32_t i = 0; i < k->c.n_operands; i++) {
    aoth_gradcheck_operand_t *o = &k->c.operands[i];
    if (!o->needs) continue;
    const int64_t n = aoth_tensor_numel(&o->tensor);
    const double least = least_size(o);
    int is_signed = 0;
    for (int64_t e = 0; e < n; e++) is_signed |= o->x[e] < 0;
    for (int64_t e = 0; e < n; e++) {
      const double by = NEXT_TO * size_of(o->x[e], least) * aoth_random_normal(&k->random);
      o->x[e] += is_signed ? by : fabs(by);
    }
    move(o, 0);
  }
}

/* ---- the case ---- */

static aot_status_t make_room(checker_t *k) {
  k->inputs = calloc(k->c.n_operands + (size_t)1, sizeof *k->inputs);
  if (!k->inputs) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < k->c.n_operands; i++) {
    aoth_gradcheck_operand_t *o = &k->c.operands[i];
    const int64_t n = aoth_tensor_numel(&o->tensor);
    k->inputs[i] = o->tensor;
    if (!o->needs) continue;
    double *room = o->x = calloc(3 * ((size_t)n + 1), sizeof *room);
    if (!room) return AOT_E_EXHAUSTED;
    o->direction = room + n;
    o->gradient = room + 2 * n;
    memcpy(o->x, o->tensor.data, (size_t)n * sizeof *room);
    const double least = least_size(o);
    for (int64_t e = 0; e < n; e++) o->direction[e] = size_of(o->x[e], least) * aoth_random_normal(&k->random);
  }
  return AOT_OK;
}

static aot_status_t compile(checker_t *k) {
  const struct {
    const char *unit, *kind;
  } stages[] = {{"rng", "pass/1"},
                {k->g->autograd, "pass/1"},
                {"partition-default", "partition/1"},
                {k->g->backend, "backend/2"}};
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    aoth_stage_t stage;
    AOT_TRY(aoth_stage_of_unit(k->g->s, stages[i].unit, stages[i].kind, NULL, &stage));
    AOT_TRY(aoth_session_run_list(k->g->s, &stage, 1));
  }
  return AOT_OK;
}

static void put_operand(json_t *list, const checker_t *k, uint32_t i, const verdict_t *v) {
  json_array_append_new(list, json_pack("{s:i, s:s, s:f, s:f, s:f}", "value", (int)k->c.operands[i].value.id, "state",
                                        verdicts[v->end], "deviation", isfinite(v->deviation) ? v->deviation : -1.0,
                                        "derivative", v->derivative, "difference", v->difference));
}

static void tell(const checker_t *k, const verdict_t *first, const verdict_t *second, json_t *answer) {
  json_t *list = json_array();
  const char *state = "ok", *why = "";
  for (uint32_t i = 0; i < k->c.n_operands; i++) {
    const verdict_t *v = first[i].end == UNCLEAR ? &second[i] : &first[i];
    if (!k->c.operands[i].needs) continue;
    put_operand(list, k, i, v);
    if (v->end == DIFFERS) state = "wrong";
    if (v->end == UNCLEAR && strcmp(state, "ok") == 0) state = "skipped", why = "not differentiable near these values";
  }
  json_object_set_new(answer, "state", json_string(state));
  json_object_set_new(answer, "why", json_string(why));
  json_object_set_new(answer, "operands", list);
}

static aot_status_t check(checker_t *k, json_t *answer) {
  aoth_session_t *s = k->g->s;
  const aoth_exec_t how = {.self = s, .queue = &s->queue, .run = exec};
  uint32_t n_tangents;
  int is_finite[2] = {0, 0};
  AOT_TRY(aoth_gradcheck_program(k->g, k->node, &k->c));
  AOT_TRY(compile(k));
  AOT_TRY(make_room(k));
  AOT_TRY(aoth_step_create(s->now.prog, &how, s->config.sink, &k->step));
  k->n_outputs = aoth_step_n_outputs(k->step);
  k->tangents = calloc(k->n_outputs + (size_t)1, sizeof *k->tangents);
  const aoth_tensor_t **tangents = calloc(k->n_outputs + (size_t)1, sizeof *tangents);
  verdict_t *found = calloc(2 * ((size_t)k->c.n_operands + 1), sizeof *found);
  if (!k->tangents || !tangents || !found) return AOT_E_EXHAUSTED;
  AOT_TRY(forward(k));
  AOT_TRY(make_tangents(k, &n_tangents));
  for (uint32_t o = 0; o < k->n_outputs; o++) tangents[o] = k->tangents[o].data ? &k->tangents[o] : NULL;
  if (!n_tangents) {
    k->c.why = "the autograd stage takes no cotangent of its results";
    return AOT_E_UNIMPLEMENTED;
  }
  verdict_t *first = found, *second = found + k->c.n_operands;
  for (uint32_t i = 0; i < 2 * k->c.n_operands; i++) found[i].end = UNCLEAR;
  AOT_TRY(check_point(k, tangents, first, &is_finite[0]));
  int is_clear = 1;
  for (uint32_t i = 0; i < k->c.n_operands; i++) is_clear &= !k->c.operands[i].needs || first[i].end != UNCLEAR;
  if (!is_clear) {
    step_aside(k);
    AOT_TRY(check_point(k, tangents, second, &is_finite[1]));
  }
  if (!is_finite[0] && !is_finite[1]) {
    k->c.why = "its results are not finite";
    return AOT_E_UNIMPLEMENTED;
  }
  tell(k, first, second, answer);
  return AOT_OK;
}

/* The child ends after this: nothing is freed. */
static aot_status_t answer_one(void *self, const aoth_request_t *request, json_t *answer) {
  checker_t *k = self;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  char why[512];
  (void)request;
  aoth_session_alone(k->g->s, sink);
  aoth_random_seed(&k->random, k->g->seed ^ (uint64_t)k->node.id << 32);
  const aot_status_t status = check(k, answer);
  if (status == AOT_OK) return AOT_OK;
  aoth_first_error(aoth_sink_text(sink), why, sizeof why);
  json_object_set_new(answer, "state", json_string(status == AOTH_E_PLUGIN ? "failed" : "skipped"));
  json_object_set_new(answer, "why", json_string(k->c.why ? k->c.why : *why ? why : "it gave no reason"));
  json_object_set_new(answer, "operands", json_array());
  return AOT_OK;
}

json_t *aoth_gradcheck_node(aoth_gradcheck_t *g, aot_node_t node) {
  checker_t k = {.g = g, .node = node};
  aoth_served_t served = {answer_one, &k};
  const aoth_request_t request = {.what = 0};
  aoth_child_t child;
  const int started = aoth_child_start(&child, aoth_child_serve_table, &served);
  json_t *answer = started ? aoth_child_ask(&child, &request, "gradcheck", (int64_t)(g->timeout * 1000)) : NULL;
  if (!answer)
    answer = json_pack("{s:s, s:s, s:[]}", "state", "failed", "why",
                       started && child.why ? child.why : "no process could be made", "operands");
  if (started) aoth_child_deinit(&child);
  return answer;
}
