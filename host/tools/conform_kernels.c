/* Rules of opsets against what their operators compute: kernels against the schema, functional forms against kernels, derivatives
 * against finite differences. Calls are made up (conform_calls.h); what none can be made up for is not tried. */
#include <tools/conform_calls.h>

#include <aot/ext/derivative.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <ir/tables.h>
#include <math.h>
#include <pipeline/call.h>
#include <pipeline/opsets.h>
#include <pipeline/session.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>
#include <tools/differences.h>
#include <tools/oracle.h>

#define MOST_TENSORS 16u

/* The unit as an open opset of the session. 0: the trial has ended. */
static int open_unit(aoth_trial_t *t, aoth_instance_t *out) {
  if (!aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, out))) return 0;
  t->s->outcome = AOTH_CALL_OK;
  return aoth_trial_judge(t, aoth_session_open_opset(t->s, t->stage->unit->id, NULL));
}

/* What the session knows of an operator. NULL: nothing. */
static const aot_op_desc_t *find_op(const aoth_trial_t *t, aot_str_t name) {
  return aoth_ops_desc(t->s->ops, aoth_ops_find(t->s->ops, name));
}

static void tell_op(aoth_trial_t *t, const char *what, aot_str_t op) {
  aoth_trial_about(t, "%s of %.*s", what, (int)op.size, op.data);
}

/* ---- 503: kernels ---- */

typedef struct call {
  aot_kernel_arg_t args[64];
  aoth_tensor_t tensors[MOST_TENSORS],
      results[MOST_TENSORS]; /* n_tensors operands in the order of arguments; n_results */
  aot_tensor_t views[MOST_TENSORS], result_views[MOST_TENSORS];
  uint8_t is_written[MOST_TENSORS];
  uint32_t n_args, n_tensors, n_results;
  char message[300];
} call_t;

/* Dense, or, where it has more than one dimension, lying the other way round. 0: its size is not known here. */
static int make_tensor(aoth_trial_t *t, aot_value_t v, int is_turned, aoth_tensor_t *out) {
  aot_type_t type;
  if (aoth_graph_value_type(t->s->now.prog, v, &type) != AOT_OK || type.kind != AOT_TYPE_TENSOR) return 0;
  for (int32_t k = 0; k < type.rank; k++)
    if (type.sizes[k] < 0) return 0;
  *out = aoth_tensor_make(NULL, type.dtype, type.rank, type.sizes);
  int64_t stride = 1;
  for (int32_t k = 0; is_turned && k < out->rank; k++) {
    out->strides[k] = stride;
    stride *= out->sizes[k] ? out->sizes[k] : 1;
  }
  out->data = calloc(1, (size_t)out->nbytes + 64);
  return out->data != NULL;
}

/* By its place, not by how it lies; integers stay small, as indices do. */
static void fill_tensor(const aoth_tensor_t *x, uint32_t seed) {
  aoth_walk_t w;
  uint32_t i = seed;
  for (aoth_walk_begin(&w, x, NULL); w.left > 0; aoth_walk_next(&w), i++)
    aoth_tensor_store(x->dtype, w.at[0], aot_dtype_is_float(x->dtype) ? (i * 37 % 19) * 0.25 - 1.5 : i % 2);
}

static int make_argument(aoth_trial_t *t, const aot_op_desc_t *d, uint32_t i, const aot_arg_t *from, int is_turned,
                         call_t *c) {
  aot_kernel_arg_t *to = &c->args[i];
  *to = (aot_kernel_arg_t){.kind = from->kind, .n = from->n};
  if (from->kind != AOT_ARG_VALUE) {
    memcpy(&to->u, &from->u, sizeof from->u);
    return from->kind != AOT_ARG_VALUES; /* lists of tensors are not tried */
  }
  const uint32_t k = c->n_tensors++;
  if (k >= MOST_TENSORS || !make_tensor(t, (aot_value_t){(uint32_t)from->u.i}, is_turned, &c->tensors[k])) return 0;
  fill_tensor(&c->tensors[k], i * 5);
  c->views[k] = aoth_tensor_view(&c->tensors[k]);
  c->is_written[k] = (d->args[i].flags & AOT_SARG_WRITE) != 0;
  to->u.tensor = &c->views[k];
  return 1;
}

/* The call of the session's program, its results filled with a byte. 0: it is none that can be made. */
static int make_call(aoth_trial_t *t, const aot_op_desc_t *d, int is_turned, uint8_t byte, call_t *c) {
  aot_prog_t *p = t->s->now.prog;
  aot_node_info_t info = {.struct_size = sizeof info};
  const aot_node_t node = aoth_graph_first(p, aoth_graph_graph_find(p, AOT_GRAPH_FORWARD));
  memset(c, 0, sizeof *c);
  if (node.id == AOT_NO_ID || aoth_graph_node_info(p, node, &info) != AOT_OK || info.n_args > 64) return 0;
  c->n_args = info.n_args;
  for (uint32_t i = 0; i < info.n_args; i++)
    if (!make_argument(t, d, i, &info.args[i], is_turned, c)) return 0;
  for (uint32_t i = 0; i < info.n_results && i < d->n_results; i++) {
    if (d->results[i].alias_set) continue;
    const uint32_t k = c->n_results++;
    if (k >= MOST_TENSORS || !make_tensor(t, (aot_value_t){info.first_result.id + i}, is_turned, &c->results[k]))
      return 0;
    memset(c->results[k].data, byte, (size_t)c->results[k].nbytes);
    c->result_views[k] = aoth_tensor_view(&c->results[k]);
  }
  return 1;
}

/* 1: it ran; 0: the trial has ended. */
static int run_kernel(aoth_trial_t *t, const aot_kernel_t *k, call_t *c) {
  const aot_kernel_call_t call = {.struct_size = sizeof call,
                                  .n_args = c->n_args,
                                  .args = c->args,
                                  .results = c->result_views,
                                  .n_results = c->n_results,
                                  .message_size = sizeof c->message,
                                  .message = c->message};
  const aot_status_t status = k->run(k, &call);
  if (status == AOT_OK) return 1;
  c->message[sizeof c->message - 1] = 0;
  if (*c->message) aoth_trial_end(t, AOTH_CONFORM_REFUSED, "%s", c->message);
  else aoth_trial_end(t, AOTH_CONFORM_FAILED, "it answers status %d without a message", (int)status);
  return 0;
}

static int are_same(const aoth_tensor_t *a, const aoth_tensor_t *b) {
  aoth_walk_t w;
  for (aoth_walk_begin(&w, a, b); w.left > 0; aoth_walk_next(&w))
    if (memcmp(w.at[0], w.at[1], (size_t)aot_dtype_size(a->dtype)) != 0) return 0;
  return 1;
}

/* What was to be read alone is what it was; results and written tensors are those of the other call. */
static void compare_calls(aoth_trial_t *t, const aot_op_desc_t *d, const call_t *c, const call_t *other,
                          const char *how) {
  call_t fresh;
  if (!make_call(t, d, 0, 0, &fresh)) return;
  for (uint32_t k = 0; k < c->n_tensors && t->end == AOTH_CONFORM_PASSED; k++) {
    if (!c->is_written[k] && !are_same(&c->tensors[k], &fresh.tensors[k]))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "it writes tensor %u of its arguments, which the schema does not mark", k);
    else if (c->is_written[k] && !are_same(&c->tensors[k], &other->tensors[k]))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "what it writes to tensor %u of its arguments is another %s", k, how);
  }
  for (uint32_t k = 0; k < c->n_results && t->end == AOTH_CONFORM_PASSED; k++)
    if (!are_same(&c->results[k], &other->results[k]))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "result %u is another %s", k, how);
}

/* The session's program is a call of it. */
static void try_kernel(aoth_trial_t *t, const aot_kernel_t *k, const aot_op_desc_t *d) {
  call_t first, again, turned;
  if (!make_call(t, d, 0, 0, &first) || !make_call(t, d, 0, 0xa5, &again)) {
    aoth_trial_end(t, AOTH_CONFORM_REFUSED, "its arguments cannot be made here");
    return;
  }
  if (!run_kernel(t, k, &first) || !run_kernel(t, k, &again)) return;
  compare_calls(t, d, &first, &again, "where other bytes stood there before");
  if (t->end != AOTH_CONFORM_PASSED || !make_call(t, d, 1, 0, &turned)) return;
  if (run_kernel(t, k, &turned)) compare_calls(t, d, &turned, &first, "where tensors lie in another order");
  else if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED; /* what is not dense it may refuse */
}

/* In the first way that it does not refuse. */
void aoth_rule_kernels(aoth_trial_t *t) {
  aoth_instance_t unit;
  aot_ext_kernels_t ext = {0};
  uint32_t n_tried = 0;
  if (!open_unit(t, &unit)) return;
  const void *given = aot_ext(&((const aot_opset_t *)unit.self)->head, AOT_EXT_KERNELS);
  if (given && aot_import(&ext, sizeof ext, given) != AOT_OK) ext.n_kernels = 0;
  if (t->number >= ext.n_kernels) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT, "it brings no kernels");
    return;
  }
  const aot_kernel_t *k = ext.kernels[t->number];
  const aot_op_desc_t *d = find_op(t, k->op);
  tell_op(t, "kernel", k->op);
  for (uint32_t way = 0; d && !(k->head.flags & AOT_KERNEL_STARTS); way++) {
    way = aoth_call_accepted(t, d, way);
    if (way == AOTH_CALL_WAYS) break;
    t->end = AOTH_CONFORM_PASSED;
    n_tried++;
    try_kernel(t, k, d);
    if (t->end != AOTH_CONFORM_REFUSED) return;
  }
  if (!n_tried) aoth_trial_end(t, AOTH_CONFORM_NOT, "no call of it can be made up");
}

/* ---- 504: functional forms ---- */

static aot_status_t no_form(aot_prog_t *p, aot_node_t n, aot_value_t *out_results, aot_value_t *out_written) {
  (void)p, (void)n, (void)out_results, (void)out_written;
  return AOT_E_NOT_FOUND;
}

/* In the oracle's process: the stage functionalize is told that no operator has a functional form, so that it runs on copies. */
static aot_status_t hide_forms(void *self, aoth_session_t *s) {
  static aot_edit_api_t edit;
  aoth_stage_t stage;
  (void)self;
  AOT_TRY(aoth_stage_of_unit(s, "functionalize", "pass/1", NULL, &stage));
  aot_host_t *host = stage.unit->plugin->host;
  edit = *host->edit;
  edit.functional_form = no_form;
  host->edit = &edit;
  return AOT_OK;
}

static uint64_t written_arguments(const aot_op_desc_t *d) {
  uint64_t written = 0;
  for (uint32_t i = 0; i < d->n_args && i < 64; i++)
    if (aoth_call_is_tensor(d, i) && d->args[i].flags & AOT_SARG_WRITE) written |= UINT64_C(1) << i;
  return written;
}

static int ask(aoth_trial_t *t, aoth_oracle_t *o, aoth_oracle_prepare_t prepare, const char *what,
               aoth_oracle_answer_t *out) {
  aoth_oracle_ask(o, prepare, NULL, out);
  if (out->end == AOTH_ORACLE_RAN) return 1;
  aoth_trial_end(t, out->end == AOTH_ORACLE_CRASHED ? AOTH_CONFORM_FAILED : AOTH_CONFORM_NOT, "%s: %s", what, out->why);
  return 0;
}

/* The number-th operator that writes and has a kernel of its own. */
static const aot_op_desc_t *nth_writing(const aoth_trial_t *t, const aot_opset_t *o, uint32_t number) {
  for (uint64_t i = 0; i < o->n_ops && o->functional_form; i++) {
    const int is_one = o->ops[i]->flags & AOT_OP_WRITES && aoth_ops_kernel(t->s->ops, o->ops[i]->name, NULL);
    if (is_one && number-- == 0) return find_op(t, o->ops[i]->name);
  }
  return NULL;
}

void aoth_rule_functional_forms(aoth_trial_t *t) {
  aoth_instance_t unit;
  aoth_oracle_t oracle;
  aoth_oracle_answer_t form = {0}, kernel = {0};
  aoth_difference_t difference;
  char text[512];
  if (!open_unit(t, &unit)) return;
  const aot_op_desc_t *d = nth_writing(t, &unit.table.opset, t->number);
  if (!d) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT,
                   "it has no functional form of an operator that has a kernel");
    return;
  }
  tell_op(t, "functional form", d->name);
  const uint32_t way = aoth_call_accepted(t, d, 0);
  const aoth_call_about_t about = {.d = d, .way = way, .other = written_arguments(d)};
  if (way == AOTH_CALL_WAYS || aoth_call_program(t, "written", &about) != AOT_OK ||
      aoth_oracle_init(&oracle, t->s, NULL, AOTH_ORACLE_BACKEND) != AOT_OK) {
    aoth_trial_end(t, AOTH_CONFORM_NOT, "no call of it can be made up");
    return;
  }
  oracle.timeout = t->c->line->timeout;
  if (ask(t, &oracle, NULL, "its functional form", &form) && ask(t, &oracle, hide_forms, "itself", &kernel) &&
      aoth_results_differ(form.results, kernel.results, aoth_program_tolerance(t->s->now.prog), &difference)) {
    aoth_difference_print(&difference, "by its own kernel", text, sizeof text);
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "by its functional form %s", text);
  }
  aoth_oracle_answer_deinit(&form);
  aoth_oracle_answer_deinit(&kernel);
  aoth_oracle_deinit(&oracle);
}

/* ---- 505: derivatives ---- */

static double step_of(uint32_t way) { return aoth_call_is_f64(way) ? 1e-4 : 1e-2; }

/* Of the sum of the squares of what it gives, so that cotangents differ; by autograd. */
static int put_gradient(aoth_trial_t *t, const aot_op_desc_t *d, uint32_t way) {
  static const char *const stages[] = {"functionalize", "autograd"};
  const aoth_call_about_t about = {.d = d, .way = way, .is_trained = 1};
  aoth_stage_t stage;
  aot_status_t status = aoth_call_program(t, "gradient", &about);
  for (uint32_t i = 0; i < 2 && status == AOT_OK; i++) {
    status = aoth_stage_of_unit(t->s, stages[i], "pass/1", NULL, &stage);
    if (status == AOT_OK) status = aoth_session_run_list(t->s, &stage, 1);
  }
  return status == AOT_OK;
}

/* The loss with an argument a little larger and a little smaller, each element by as much of itself; and the argument. */
static int put_difference(aoth_trial_t *t, const aot_op_desc_t *d, uint32_t way, uint32_t arg) {
  const aoth_call_about_t about = {
      .d = d, .way = way, .is_trained = 1, .other = UINT64_C(1) << arg, .step = step_of(way)};
  return aoth_call_program(t, "difference", &about) == AOT_OK;
}

static const aoth_tensor_t *result(const aoth_oracle_answer_t *a, const char *key) {
  const aoth_st_entry_t *e = aoth_st_find(a->results, key);
  return e ? &e->tensor : NULL;
}

/* The derivative along the argument itself: by its gradient, and by the difference. */
static void compare_along(aoth_trial_t *t, uint32_t way, uint32_t tensor, const aoth_oracle_answer_t *gradient,
                          const aoth_oracle_answer_t *difference) {
  char key[32];
  snprintf(key, sizeof key, "grad.a%u", tensor);
  const aoth_tensor_t *grad = result(gradient, key), *own = result(difference, "output.2");
  const aoth_tensor_t *more = result(difference, "output.0"), *less = result(difference, "output.1");
  double sum = 0, size = 0;
  aoth_walk_t w;
  if (!own || !more || !less || (grad && !aoth_tensor_same_sizes(grad, own))) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "the gradient of tensor %u of its arguments has another size", tensor);
    return;
  }
  if (grad)
    for (aoth_walk_begin(&w, grad, own); w.left > 0; aoth_walk_next(&w)) {
      const double term = aoth_tensor_load(grad->dtype, w.at[0]) * aoth_tensor_load(own->dtype, w.at[1]);
      sum += term;
      size += fabs(term);
    }
  const double up = aoth_tensor_load(more->dtype, more->data), down = aoth_tensor_load(less->dtype, less->data);
  const double found = (up - down) / (2 * step_of(way)), near = aoth_call_is_f64(way) ? 1e-5 : 3e-2;
  const double rounded = aoth_call_is_f64(way) ? 1e-10 : 1e-5; /* of the losses, divided by the step */
  const double most = near * (size + fabs(found)) + rounded * (fabs(up) + fabs(down)) / step_of(way) + 1e-9;
  if (!(fabs(sum - found) <= most))
    aoth_trial_end(t, AOTH_CONFORM_FAILED,
                   "along tensor %u of its arguments the loss changes by %.6g, by its derivative by %.6g", tensor,
                   found, sum);
}

static void check_derivative(aoth_trial_t *t, aoth_oracle_t *o, const aot_op_desc_t *d, uint64_t covers, uint32_t way) {
  aoth_oracle_answer_t gradient = {0}, difference = {0};
  uint32_t n_tried = 0;
  if (!put_gradient(t, d, way)) {
    t->end = AOTH_CONFORM_FAILED;
    aoth_trial_complaint(t, t->why, sizeof t->why);
    return;
  }
  if (!ask(t, o, NULL, "its gradient", &gradient)) return;
  for (uint32_t i = 0; i < d->n_args && i < 64 && t->end == AOTH_CONFORM_PASSED; i++) {
    if (!(covers >> i & 1) || !aoth_call_is_tensor(d, i)) continue;
    if (put_difference(t, d, way, i) && ask(t, o, NULL, "the difference", &difference))
      compare_along(t, way, aoth_call_tensor(d, i), &gradient, &difference);
    aoth_oracle_answer_deinit(&difference);
    n_tried++;
  }
  if (!n_tried && t->end == AOTH_CONFORM_PASSED) t->end = AOTH_CONFORM_NOT;
  aoth_oracle_answer_deinit(&gradient);
}

/* In the first way in which its kernels run. */
void aoth_rule_derivatives(aoth_trial_t *t) {
  aoth_instance_t unit;
  aoth_oracle_t oracle;
  aot_ext_derivatives_t ext = {0};
  if (!open_unit(t, &unit)) return;
  const void *given = aot_ext(&((const aot_opset_t *)unit.self)->head, AOT_EXT_DERIVATIVE);
  if (given && aot_import(&ext, sizeof ext, given) != AOT_OK) ext.n_derivatives = 0;
  if (t->number >= ext.n_derivatives) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT, "it brings no derivatives");
    return;
  }
  const aot_derivative_t *derivative = ext.derivatives[t->number];
  const aot_op_desc_t *d = find_op(t, derivative->op);
  tell_op(t, "derivative", derivative->op);
  aoth_trial_end(t, AOTH_CONFORM_NOT, "no call of it can be made up");
  if (!d || !d->n_results || aoth_oracle_init(&oracle, t->s, NULL, AOTH_ORACLE_BACKEND) != AOT_OK) return;
  oracle.timeout = t->c->line->timeout;
  for (uint32_t way = 0; t->end == AOTH_CONFORM_NOT; way++) {
    way = aoth_call_accepted(t, d, way);
    if (way == AOTH_CALL_WAYS || !aoth_call_is_float(way)) break;
    t->end = AOTH_CONFORM_PASSED;
    check_derivative(t, &oracle, d, derivative->covers, way);
  }
  aoth_oracle_deinit(&oracle);
}
