/* Rules of opsets against what their operators compute: kernels against the schema, functional forms against kernels,
 * derivatives against finite differences. Calls are made up (conform_calls.h); what none can be made up for is not
 * tried. */
#include <sdk/conform/conform_calls.h>

#include <aot/ext/derivative.h>
#include <aot/ext/kernels.h>
#include <aot/inline.h>
#include <ir/tables.h>
#include <math.h>
#include <sandbox/call.h>
#include <compiler/decompose.h>
#include <compiler/opsets.h>
#include <sandbox/session.h>
#include <base/clock.h>
#include <pthread.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/differences.h>
#include <trainer/trial/oracle.h>

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

/* Layouts of a tensor: row major; column major; with gaps and an offset; all rows the same memory. */
enum { DENSE, TURNED, GAPS, REPEATED, N_LAYOUTS };
static const char *const layouts[N_LAYOUTS] = {"row by row", "column by column", "with gaps, behind an offset",
                                               "with rows that are one in memory"};

static void lay_out(aoth_tensor_t *x, int layout) {
  int64_t stride = 1, reach = 1;
  for (int32_t k = 0; layout == TURNED && k < x->rank; k++) {
    x->strides[k] = stride;
    stride *= x->sizes[k] ? x->sizes[k] : 1;
  }
  if (layout == GAPS) x->offset = 3;
  for (int32_t k = 0; layout == GAPS && k < x->rank; k++) x->strides[k] *= 2;
  if (layout == REPEATED && x->rank) x->strides[0] = 0;
  for (int32_t k = 0; k < x->rank; k++) reach += x->sizes[k] ? (x->sizes[k] - 1) * x->strides[k] : 0;
  x->nbytes = (uint64_t)(reach + x->offset) * aot_dtype_size(x->dtype);
}

/* 0: its size is not known here. */
static int make_tensor(aoth_trial_t *t, aot_value_t v, int layout, aoth_tensor_t *out) {
  aot_type_t type;
  if (aoth_graph_value_type(t->s->now.prog, v, &type) != AOT_OK || type.kind != AOT_TYPE_TENSOR) return 0;
  for (int32_t k = 0; k < type.rank; k++)
    if (type.sizes[k] < 0) return 0;
  *out = aoth_tensor_make(NULL, type.dtype, type.rank, type.sizes);
  lay_out(out, layout);
  out->data = calloc(1, (size_t)out->nbytes + 64);
  return out->data != NULL;
}

/* By its place, not by how it is laid out; integers stay small, as indices do. */
static void fill_tensor(const aoth_tensor_t *x, uint32_t seed) {
  aoth_walk_t w;
  uint32_t i = seed;
  for (aoth_walk_begin(&w, x, NULL); w.left > 0; aoth_walk_next(&w), i++)
    kit_element_store(x->dtype, w.at[0], aot_dtype_is_float(x->dtype) ? (i * 37 % 19) * 0.25 - 1.5 : i % 2);
}

/* Which tensor is not row major: all, or one, where results are counted after arguments. */
#define ALL_TENSORS UINT32_MAX
typedef struct layouts {
  uint32_t which;
  int layout;
} layouts_t;

static int layout_of(layouts_t how, uint32_t k) {
  return how.which == ALL_TENSORS || how.which == k ? how.layout : DENSE;
}

static int make_argument(aoth_trial_t *t, const aot_op_desc_t *d, uint32_t i, const aot_arg_t *from, layouts_t how,
                         call_t *c) {
  aot_kernel_arg_t *to = &c->args[i];
  *to = (aot_kernel_arg_t){.kind = from->kind, .n = from->n};
  if (from->kind != AOT_ARG_VALUE) {
    memcpy(&to->u, &from->u, sizeof from->u);
    return from->kind != AOT_ARG_VALUES; /* lists of tensors are not tried */
  }
  const uint32_t k = c->n_tensors++;
  if (k >= MOST_TENSORS || !make_tensor(t, (aot_value_t){(uint32_t)from->u.i}, layout_of(how, k), &c->tensors[k]))
    return 0;
  fill_tensor(&c->tensors[k], i * 5);
  c->views[k] = aoth_tensor_view(&c->tensors[k]);
  c->is_written[k] = (d->args[i].flags & AOT_SARG_WRITE) != 0;
  to->u.tensor = &c->views[k];
  return 1;
}

/* The call of the session's program, its results filled with a byte. 0: it is none that can be made. */
static int make_call(aoth_trial_t *t, const aot_op_desc_t *d, layouts_t how, uint8_t byte, call_t *c) {
  aot_prog_t *p = t->s->now.prog;
  aot_node_info_t info = {.struct_size = sizeof info};
  const aot_node_t node = aoth_graph_first(p, aoth_graph_graph_find(p, AOT_GRAPH_FORWARD));
  memset(c, 0, sizeof *c);
  if (node.id == AOT_NO_ID || aoth_graph_node_info(p, node, &info) != AOT_OK || info.n_args > 64) return 0;
  c->n_args = info.n_args;
  for (uint32_t i = 0; i < info.n_args; i++)
    if (!make_argument(t, d, i, &info.args[i], how, c)) return 0;
  for (uint32_t i = 0; i < info.n_results && i < d->n_results; i++) {
    if (d->results[i].alias_set) continue;
    const uint32_t k = c->n_results++;
    if (k >= MOST_TENSORS ||
        !make_tensor(t, (aot_value_t){info.first_result.id + i}, layout_of(how, c->n_tensors + k), &c->results[k]))
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

static void copy_tensor(const aoth_tensor_t *to, const aoth_tensor_t *from) {
  aoth_walk_t w;
  for (aoth_walk_begin(&w, to, from); w.left > 0; aoth_walk_next(&w))
    memcpy(w.at[0], w.at[1], (size_t)aot_dtype_size(to->dtype));
}

/* What was to be read alone is what it was before (`fresh`); results and written tensors are those of the other
 * call. */
static void compare_calls(aoth_trial_t *t, const call_t *c, const call_t *fresh, const call_t *other, const char *how) {
  for (uint32_t k = 0; k < c->n_tensors && t->end == AOTH_CONFORM_PASSED; k++) {
    if (!c->is_written[k] && !are_same(&c->tensors[k], &fresh->tensors[k]))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "it writes tensor %u of its arguments, which the schema does not mark", k);
    else if (c->is_written[k] && !are_same(&c->tensors[k], &other->tensors[k]))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "what it writes to tensor %u of its arguments is another %s", k, how);
  }
  for (uint32_t k = 0; k < c->n_results && t->end == AOTH_CONFORM_PASSED; k++)
    if (!are_same(&c->results[k], &other->results[k]))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "result %u is another %s", k, how);
}

static void free_call(call_t *c) {
  for (uint32_t k = 0; k < c->n_tensors && k < MOST_TENSORS; k++) free(c->tensors[k].data);
  for (uint32_t k = 0; k < c->n_results && k < MOST_TENSORS; k++) free(c->results[k].data);
}

/* The call with tensors that lie so, and one on the same numbers, row by row. A refusal of what is not dense is none of
 * the unit's faults. */
static void try_layout(aoth_trial_t *t, const aot_kernel_t *k, const aot_op_desc_t *d, layouts_t how) {
  static const layouts_t dense = {ALL_TENSORS, DENSE};
  call_t odd, fresh, same;
  char text[160];
  const int is_made =
      make_call(t, d, how, 0, &odd) && make_call(t, d, how, 0, &fresh) && make_call(t, d, dense, 0, &same);
  for (uint32_t i = 0; is_made && i < odd.n_tensors; i++) copy_tensor(&same.tensors[i], &odd.tensors[i]);
  const int is_one = how.which != ALL_TENSORS, is_result = is_one && how.which >= odd.n_tensors;
  snprintf(text, sizeof text, "where each tensor lies %s", layouts[how.layout]);
  if (is_one)
    snprintf(text, sizeof text, "where only %s %u lies %s", is_result ? "result" : "tensor",
             is_result ? how.which - odd.n_tensors : how.which, layouts[how.layout]);
  if (is_made && run_kernel(t, k, &odd) && run_kernel(t, k, &same)) compare_calls(t, &odd, &fresh, &same, text);
  if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED;
  free_call(&odd);
  free_call(&fresh);
  free_call(&same);
}

/* All tensors, then each alone. What is written has memory of its own for each element. */
static void try_layouts(aoth_trial_t *t, const aot_kernel_t *k, const aot_op_desc_t *d, const call_t *c) {
  for (int layout = TURNED; layout < N_LAYOUTS; layout++) {
    if (layout != REPEATED && t->end == AOTH_CONFORM_PASSED) try_layout(t, k, d, (layouts_t){ALL_TENSORS, layout});
    for (uint32_t i = 0; i < c->n_tensors + c->n_results && t->end == AOTH_CONFORM_PASSED; i++) {
      const int is_written = i >= c->n_tensors || c->is_written[i];
      if (layout != REPEATED || !is_written) try_layout(t, k, d, (layouts_t){i, layout});
    }
  }
}

/* The session's program is a call of it. */
static void try_kernel(aoth_trial_t *t, const aot_kernel_t *k, const aot_op_desc_t *d) {
  static const layouts_t dense = {ALL_TENSORS, DENSE};
  call_t first, again, fresh;
  if (!make_call(t, d, dense, 0, &first) || !make_call(t, d, dense, 0xa5, &again) ||
      !make_call(t, d, dense, 0, &fresh)) {
    aoth_trial_end(t, AOTH_CONFORM_REFUSED, "its arguments cannot be made here");
    return;
  }
  if (!run_kernel(t, k, &first) || !run_kernel(t, k, &again)) return;
  compare_calls(t, &first, &fresh, &again, "where other bytes stood there before");
  if (t->end == AOTH_CONFORM_PASSED) try_layouts(t, k, d, &first);
}

/* The trial's kernel, in the first way that it does not refuse. */
static void each_way(aoth_trial_t *t, void (*act)(aoth_trial_t *t, const aot_kernel_t *k, const aot_op_desc_t *d)) {
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
    act(t, k, d);
    if (t->end != AOTH_CONFORM_REFUSED) return;
  }
  if (!n_tried) aoth_trial_end(t, AOTH_CONFORM_NOT, "no call of it can be made up");
}

void aoth_rule_kernels(aoth_trial_t *t) { each_way(t, try_kernel); }

/* ---- 507: threads ---- */

#define N_THREADS 4u
#define MOST_RUNS 20000u
#define MOST_NS UINT64_C(300000000)

typedef struct runner {
  const aot_kernel_t *k;
  call_t call;
  const call_t *wanted;
  aoth_trial_t own;
  pthread_t id;
} runner_t;

static void *run_often(void *self) {
  runner_t *r = self;
  const uint64_t begin = aoth_now_ns();
  for (uint32_t i = 0; i < MOST_RUNS && aoth_now_ns() - begin < MOST_NS; i++) {
    if (!run_kernel(&r->own, r->k, &r->call)) break;
    for (uint32_t k = 0; k < r->call.n_results && r->own.end == AOTH_CONFORM_PASSED; k++)
      if (!are_same(&r->call.results[k], &r->wanted->results[k]))
        aoth_trial_end(&r->own, AOTH_CONFORM_FAILED, "in one of four threads at once result %u is another", k);
    if (r->own.end != AOTH_CONFORM_PASSED) break;
  }
  return NULL;
}

/* Each thread has tensors of its own, with numbers of its own. */
static void run_in_threads(aoth_trial_t *t, const aot_kernel_t *k, const aot_op_desc_t *d) {
  static const layouts_t dense = {ALL_TENSORS, DENSE};
  static runner_t r[N_THREADS]; /* one trial a process */
  static call_t wanted[N_THREADS];
  for (uint32_t i = 0; i < N_THREADS; i++) {
    if (!make_call(t, d, dense, 0, &wanted[i]) || !make_call(t, d, dense, 0, &r[i].call)) return;
    for (uint32_t n = 0; n < wanted[i].n_tensors; n++) {
      if (aot_dtype_is_float(wanted[i].tensors[n].dtype)) fill_tensor(&wanted[i].tensors[n], 3 * i + n);
      copy_tensor(&r[i].call.tensors[n], &wanted[i].tensors[n]);
      if (wanted[i].is_written[n]) return; /* it would continue from what it has written */
    }
    if (!run_kernel(t, k, &wanted[i])) return;
    r[i].k = k;
    r[i].wanted = &wanted[i];
    r[i].own = *t;
  }
  for (uint32_t i = 0; i < N_THREADS; i++)
    if (pthread_create(&r[i].id, NULL, run_often, &r[i]) != 0) abort();
  for (uint32_t i = 0; i < N_THREADS; i++) pthread_join(r[i].id, NULL);
  for (uint32_t i = 0; i < N_THREADS && t->end == AOTH_CONFORM_PASSED; i++)
    if (r[i].own.end == AOTH_CONFORM_FAILED) aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s", r[i].own.why);
}

void aoth_rule_kernel_threads(aoth_trial_t *t) { each_way(t, run_in_threads); }

/* ---- 504: functional forms ---- */

static aot_status_t no_form(aot_prog_t *p, aot_node_t n, aot_value_t *out_results, aot_value_t *out_written) {
  (void)p, (void)n, (void)out_results, (void)out_written;
  return AOT_E_NOT_FOUND;
}

/* In the oracle's process: the stage functionalize is reported that no operator has a functional form, so that it runs
 * on copies. */
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

/* The number-th operator that writes, or of those the number-th that has a kernel. */
static const aot_op_desc_t *nth_writing(const aoth_trial_t *t, const aot_opset_t *o, int has_kernel, uint32_t number) {
  for (uint64_t i = 0; i < o->n_ops && o->functional_form; i++) {
    const int is_one =
        o->ops[i]->flags & AOT_OP_WRITES && (!has_kernel || aoth_ops_kernel(t->s->ops, o->ops[i]->name, NULL));
    if (is_one && number-- == 0) return find_op(t, o->ops[i]->name);
  }
  return NULL;
}

static int same_shape(aot_prog_t *p, aot_value_t a, aot_value_t b) {
  aot_type_t x, y;
  if (aoth_graph_value_type(p, a, &x) != AOT_OK || aoth_graph_value_type(p, b, &y) != AOT_OK) return 1;
  return x.dtype == y.dtype && x.rank == y.rank &&
         (!x.rank || memcmp(x.sizes, y.sizes, (size_t)x.rank * sizeof *x.sizes) == 0);
}

/* Of the session's program, a call on copies of what it writes, made functional: what is written has the type that it
 * had. */
static void check_written_types(aoth_trial_t *t, const aot_op_desc_t *d) {
  aoth_stage_t functionalize;
  if (aoth_stage_of_unit(t->s, "functionalize", "pass/1", NULL, &functionalize) != AOT_OK) return;
  if (!aoth_trial_judge(t, aoth_session_run_list(t->s, &functionalize, 1))) {
    if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED; /* these shapes */
    return;
  }
  aot_prog_t *p = t->s->now.prog;
  const aot_graph_t g = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  uint32_t n = d->n_results;
  for (uint32_t i = 0; i < d->n_args && i < 64; i++) {
    if (!(written_arguments(d) >> i & 1) || n >= aoth_graph_n_outputs(p, g)) continue;
    const aot_value_t now = aoth_graph_outputs(p, g)[n++].value;
    const aot_value_t was = aoth_graph_inputs(p, g)[aoth_call_tensor(d, i)].value;
    if (!same_shape(p, now, was))
      aoth_trial_end(t, AOTH_CONFORM_FAILED,
                     "by its functional form tensor %u of its arguments, which it writes, has another type afterwards",
                     aoth_call_tensor(d, i));
  }
}

/* In all ways but those of integers, which many operators do not write: tensors of one shape do not show which is
 * which. */
static void try_written_types(aoth_trial_t *t, const aot_op_desc_t *d) {
  for (uint32_t way = 0; way < AOTH_CALL_WAYS && t->end == AOTH_CONFORM_PASSED; way++) {
    way = aoth_call_accepted(t, d, way);
    const aoth_call_about_t about = {.d = d, .way = way, .other = written_arguments(d)};
    if (way < AOTH_CALL_WAYS && aoth_call_is_float(way) && aoth_call_program(t, "written", &about) == AOT_OK)
      check_written_types(t, d);
  }
}

/* Two ways to compute the session's program. */
static void compare_ways(aoth_trial_t *t, aoth_oracle_prepare_t one, const char *by_one, aoth_oracle_prepare_t other,
                         const char *by_other) {
  aoth_oracle_t oracle;
  aoth_oracle_answer_t a = {0}, b = {0};
  aoth_difference_t difference;
  char text[512];
  if (aoth_oracle_init(&oracle, t->s, NULL, AOTH_ORACLE_BACKEND) != AOT_OK) {
    aoth_trial_end(t, AOTH_CONFORM_NOT, "there is no backend-ref");
    return;
  }
  oracle.timeout = t->c->line->timeout;
  if (ask(t, &oracle, one, by_one, &a) && ask(t, &oracle, other, by_other, &b) &&
      aoth_results_differ(a.results, b.results, aoth_program_tolerance(t->s->now.prog), &difference)) {
    aoth_difference_print(&difference, by_other, text, sizeof text);
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s: %s", by_one, text);
  }
  aoth_oracle_answer_deinit(&a);
  aoth_oracle_answer_deinit(&b);
  aoth_oracle_deinit(&oracle);
}

#define CHUNK 64u /* operators whose types are looked at in one trial: there are hundreds, and nothing is run */

/* Operators [first, first + CHUNK) that write. 0: there are no more. */
static int try_types_of_many(aoth_trial_t *t, const aot_opset_t *o, uint32_t first) {
  if (!nth_writing(t, o, 0, first)) return 0;
  for (uint32_t i = first; i < first + CHUNK && t->end == AOTH_CONFORM_PASSED; i++) {
    const aot_op_desc_t *d = nth_writing(t, o, 0, i);
    if (!d || d->flags & AOT_OP_INPLACE_VIEW) continue;
    tell_op(t, "functional form", d->name); /* should it crash */
    try_written_types(t, d);
  }
  if (t->end == AOTH_CONFORM_PASSED)
    aoth_trial_about(t, "types by functional forms of operators %u to %u", first, first + CHUNK - 1);
  return 1;
}

static void try_form(aoth_trial_t *t, const aot_op_desc_t *d) {
  tell_op(t, "functional form", d->name);
  const uint32_t way = aoth_call_accepted(t, d, 0);
  const aoth_call_about_t about = {.d = d, .way = way, .other = written_arguments(d)};
  if (way == AOTH_CALL_WAYS || aoth_call_program(t, "written", &about) != AOT_OK)
    aoth_trial_end(t, AOTH_CONFORM_NOT, "no call of it can be made up");
  else compare_ways(t, NULL, "by its functional form", hide_forms, "by its own kernel");
}

/* First the types of all, then the results of those that have kernels. */
void aoth_rule_functional_forms(aoth_trial_t *t) {
  aoth_instance_t unit;
  uint32_t n_chunks = 0;
  if (!open_unit(t, &unit)) return;
  const aot_opset_t *o = &unit.table.opset;
  if (try_types_of_many(t, o, t->number * CHUNK)) return;
  while (nth_writing(t, o, 0, n_chunks * CHUNK)) n_chunks++;
  const aot_op_desc_t *d = nth_writing(t, o, 1, t->number - n_chunks);
  if (d) try_form(t, d);
  else
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT,
                   "it has no functional form, or no operator that writes");
}

/* ---- 506: decompositions ---- */

/* In the oracle's process: the first node decomposed by its opset. */
static aot_status_t take_apart(void *self, aoth_session_t *s) {
  aot_prog_t *p = s->now.prog;
  const aot_node_t n = aoth_graph_first(p, aoth_graph_graph_find(p, AOT_GRAPH_FORWARD));
  kit_arena_t *arena = kit_arena_create();
  aoth_stage_t stage;
  int done = 0;
  (void)self;
  AOT_TRY(aoth_stage_of_unit(s, AOTH_ORACLE_BACKEND, "backend/2", NULL, &stage));
  AOT_TRY(aoth_try_decompose_node(s, &stage, arena, n, &done));
  return done ? AOT_OK : AOT_E_NOT_FOUND;
}

/* The number-th operator that has a kernel and writes nothing. */
static const aot_op_desc_t *nth_computing(const aoth_trial_t *t, const aot_opset_t *o, uint32_t number) {
  for (uint64_t i = 0; i < o->n_ops && o->decompose; i++) {
    const int is_one = !(o->ops[i]->flags & AOT_OP_WRITES) && aoth_ops_kernel(t->s->ops, o->ops[i]->name, NULL);
    if (is_one && number-- == 0) return find_op(t, o->ops[i]->name);
  }
  return NULL;
}

void aoth_rule_decompositions(aoth_trial_t *t) {
  aoth_instance_t unit;
  if (!open_unit(t, &unit)) return;
  const aot_op_desc_t *d = nth_computing(t, &unit.table.opset, t->number);
  if (!d) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT,
                   "it has no decomposition of an operator that has a kernel");
    return;
  }
  tell_op(t, "decomposition", d->name);
  aoth_trial_end(t, AOTH_CONFORM_NOT, "no call of it can be made up");
  for (uint32_t way = 0; t->end == AOTH_CONFORM_NOT; way++) {
    way = aoth_call_accepted(t, d, way); /* the call is the session's program */
    if (way == AOTH_CALL_WAYS) break;
    t->end = AOTH_CONFORM_PASSED;
    compare_ways(t, take_apart, "by its decomposition", NULL, "by its own kernel");
  }
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

/* The loss with an argument a little larger and a little smaller, each element by as much of itself; and the
 * argument. */
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
      const double term = kit_element_load(grad->dtype, w.at[0]) * kit_element_load(own->dtype, w.at[1]);
      sum += term;
      size += fabs(term);
    }
  const double up = kit_element_load(more->dtype, more->data), down = kit_element_load(less->dtype, less->data);
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
