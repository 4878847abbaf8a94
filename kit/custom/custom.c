#include "custom.h"

#include "reinplace.h"
#include "kit/base/errors.h"
#include <aot/float_env.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTO_FUNCTIONALIZED "aot.auto_functionalized.default"
#define MESSAGE_SIZE 256u

static const aot_snap_op_t *op_row(const aot_snapshot_t *s, uint32_t op) {
  return &AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[op];
}
static aot_str_t op_name(const aot_snapshot_t *s, uint32_t op) { return aot_snap_text(s, op_row(s, op)->name); }
static const aot_snap_node_t *node_row(const aot_snapshot_t *s, uint32_t node) {
  return &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
}
static const aot_snap_arg_t *args_of(const aot_snapshot_t *s, const aot_snap_node_t *n) {
  return AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
}

/* ---- which nodes, which kernels ---- */

static int is_auto(const aot_snapshot_t *s, const aot_snap_node_t *n) {
  return aot_str_eq(op_name(s, n->op), aot_str(AUTO_FUNCTIONALIZED)) && n->n_args > 0 &&
         args_of(s, n)[0].kind == AOT_ARG_OP;
}

/* The operator that the node represents. */
static uint32_t op_of(const aot_snapshot_t *s, const aot_snap_node_t *n) {
  return is_auto(s, n) ? (uint32_t)args_of(s, n)[0].i : n->op;
}

/* Numbers of the shape environment need no kernel. */
static int makes_numbers(const aot_snapshot_t *s, const aot_snap_node_t *n) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t r = 0; r < n->n_results; r++)
    if (values[n->result_begin + r].kind != AOT_TYPE_TENSOR && values[n->result_begin + r].kind != AOT_TYPE_NONE)
      return 1;
  return 0;
}

/* By operator row: neither a region nor in kit/reference. */
static uint8_t *find_custom_ops(const aot_snapshot_t *s) {
  uint8_t *custom = calloc((size_t)s->ops.count + 1, 1);
  for (uint32_t o = 1; custom && o < s->ops.count; o++)
    custom[o] = !(op_row(s, o)->flags & AOT_OP_REGION) && !rk_find(op_name(s, o));
  return custom;
}

static void look_up(const custom_world_t *w, aot_str_t name, const aot_op_desc_t **out_op,
                    const aot_kernel_t **out_kernel) {
  *out_op = NULL;
  *out_kernel = NULL;
  if (w->lookup && w->lookup->find) w->lookup->find(w->lookup, w->ctx, name, out_op, out_kernel);
}

/* ---- what is written ---- */

static uint32_t n_elements(const aot_snap_arg_t *a) {
  return a->kind == AOT_ARG_VALUE ? 1 : a->kind == AOT_ARG_VALUES ? a->n : 0;
}

static uint32_t value_at(const aot_snapshot_t *s, const aot_snap_arg_t *a, uint32_t element) {
  return a->kind == AOT_ARG_VALUE ? (uint32_t)a->i : AOT_SNAP_ROWS(s, uint32_t, operands)[(uint64_t)a->i + element];
}

static int is_written(const aot_op_desc_t *op, const aot_snap_arg_t *args, uint32_t n_args, uint32_t arg) {
  if (arg >= op->n_args || !(op->args[arg].flags & AOT_SARG_WRITE)) return 0;
  const int32_t condition = op->args[arg].write_if;
  return !condition || ((uint32_t)condition <= n_args && args[condition - 1].i != 0);
}

static int is_tensor(const aot_snapshot_t *s, uint32_t value) {
  return value != AOT_NO_ID && AOT_SNAP_ROWS(s, aot_snap_value_t, values)[value].kind == AOT_TYPE_TENSOR;
}

/* Fills out (NULL: counts only) with the written operands that are there. */
static uint32_t list_written(const aot_snapshot_t *s, const aot_op_desc_t *op, const aot_snap_arg_t *args,
                             uint32_t n_args, custom_written_t *out) {
  uint32_t n = 0;
  for (uint32_t a = 0; a < n_args; a++)
    for (uint32_t e = 0; is_written(op, args, n_args, a) && e < n_elements(&args[a]); e++) {
      if (!is_tensor(s, value_at(s, &args[a], e))) continue;
      if (out) out[n] = (custom_written_t){a, e, value_at(s, &args[a], e), CUSTOM_NONE, 0};
      n++;
    }
  return n;
}

/* ---- refusals ---- */

static const char *say(custom_error_t *e, const char *format, aot_str_t name) {
  snprintf(e->text, sizeof e->text, format, (int)name.size, name.data, (int)name.size, name.data);
  return e->text;
}

static const char *refuse_results(const aot_snapshot_t *s, const aot_snap_node_t *n, const aot_op_desc_t *op,
                                  uint32_t n_written, custom_error_t *error) {
  uint32_t n_own = 0, lists = 0;
  for (uint32_t r = 0; r < op->n_results; r++) {
    if (op->results[r].alias_set == 0) n_own++, lists += (op->results[r].flags & AOT_SARG_LIST) != 0;
    else if (!is_auto(s, n))
      return "it gives a view of its argument: a kernel makes new tensors only; its operator set has to decompose it";
  }
  if (lists ? n->n_results >= n_own - lists + n_written : n->n_results == n_own + n_written) return NULL;
  snprintf(error->text, sizeof error->text, "it has %u results; %u of its own and %u written arguments were expected",
           n->n_results, n_own, n_written);
  return error->text;
}

const char *custom_refuse(const custom_world_t *w, const aot_snapshot_t *s, uint32_t node, custom_error_t *error) {
  const aot_snap_node_t *n = node_row(s, node);
  const aot_op_desc_t *op;
  const aot_kernel_t *kernel;
  error->node = n->id;
  const uint32_t skip = is_auto(s, n) ? 1 : 0;
  const aot_str_t name = op_name(s, op_of(s, n));
  look_up(w, name, &op, &kernel);
  if ((!op || !kernel) && AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[op_of(s, n)].flags & AOT_OP_RANDOM)
    return "it draws random numbers; make them explicit first (stage rng)";
  if ((!op || !kernel) && AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[op_of(s, n)].flags & AOT_OP_COLLECTIVE)
    return say(error,
               "%.*s takes other ranks: name a communicator in run.ranks, and the stage fsdp, which brings kernels of "
               "collectives",
               name);
  if (!op || !kernel)
    return say(error,
               "there is no kernel for %.*s: none of this backend, and no opened opset offers one (aot.kernels/1)",
               name);
  const int can_wait = w->takes_starts || (w->has_queues && aot_ext(&kernel->head, AOT_EXT_QUEUE_KERNEL));
  if (kernel->head.flags & AOT_KERNEL_STARTS && !can_wait)
    return "its kernel is done later than its node, which this backend cannot wait for";
  const uint32_t n_written = list_written(s, op, args_of(s, n) + skip, n->n_args - skip, NULL);
  if (!skip && n_written) return "it writes an argument; make the program functional first (stage functionalize)";
  return refuse_results(s, n, op, skip ? n_written : 0, error);
}

/* ---- preparing ---- */

/* The same value written by several arguments is one tensor. seen: by value row, all zero before and after. */
static void find_same(custom_node_t *n, uint32_t *seen) {
  for (uint32_t k = 0; k < n->n_written; k++) {
    custom_written_t *w = &n->written[k];
    if (seen[w->value]) w->same_as = seen[w->value] - 1;
    else seen[w->value] = k + 1;
  }
  for (uint32_t k = 0; k < n->n_written; k++) seen[n->written[k].value] = 0;
}

static aot_status_t add_node(const custom_world_t *w, const aot_snapshot_t *s, uint32_t node, uint32_t *seen,
                             custom_program_t *p) {
  const aot_snap_node_t *row = node_row(s, node);
  custom_node_t *n = &p->nodes[p->n_nodes];
  memset(n, 0, sizeof *n);
  n->node = node;
  n->first_arg = is_auto(s, row) ? 1 : 0;
  look_up(w, op_name(s, op_of(s, row)), &n->op, &n->kernel);
  n->n_written = n->first_arg ? list_written(s, n->op, args_of(s, row) + 1, row->n_args - 1, NULL) : 0;
  n->n_own = row->n_results - n->n_written;
  n->passes = (n->kernel->head.flags & AOT_KERNEL_PASSES) && !n->first_arg && row->n_results == 1 && row->n_args &&
              args_of(s, row)[0].kind == AOT_ARG_VALUE;
  n->written = calloc((size_t)n->n_written + 1, sizeof *n->written);
  if (!n->written) return AOT_E_EXHAUSTED;
  if (n->n_written) list_written(s, n->op, args_of(s, row) + 1, row->n_args - 1, n->written);
  find_same(n, seen);
  p->of_node[node] = p->n_nodes++;
  return AOT_OK;
}

static aot_status_t add_nodes(const custom_world_t *w, const aot_snapshot_t *s, const uint8_t *custom, uint32_t *seen,
                              custom_program_t *p, custom_error_t *error) {
  for (uint32_t i = 1; i < s->nodes.count; i++) {
    const aot_snap_node_t *n = node_row(s, i);
    if (!custom[n->op] || makes_numbers(s, n)) continue;
    const char *why = custom_refuse(w, s, i, error);
    if (why && !is_auto(s, n)) continue; /* the backend may know it all the same */
    if (why && why != error->text) snprintf(error->text, sizeof error->text, "%s", why);
    if (why) return AOT_E_UNIMPLEMENTED;
    AOT_TRY(add_node(w, s, i, seen, p));
  }
  error->node = AOT_NO_ID;
  return custom_reinplace(s, p);
}

aot_status_t custom_prepare(const custom_world_t *w, const aot_snapshot_t *s, custom_program_t *out,
                            custom_error_t *error) {
  uint8_t *custom = find_custom_ops(s);
  uint32_t n = 0, *seen = NULL;
  memset(out, 0, sizeof *out);
  error->node = AOT_NO_ID;
  for (uint32_t i = 1; custom && i < s->nodes.count; i++)
    n += custom[node_row(s, i)->op] && !makes_numbers(s, node_row(s, i));
  aot_status_t status = custom ? AOT_OK : AOT_E_EXHAUSTED;
  if (n) {
    seen = calloc((size_t)s->values.count + 1, sizeof *seen);
    out->nodes = calloc(n, sizeof *out->nodes);
    out->of_node = malloc((size_t)s->nodes.count * sizeof *out->of_node);
    if (out->of_node) memset(out->of_node, 0xFF, (size_t)s->nodes.count * sizeof *out->of_node);
    status = custom && seen && out->nodes && out->of_node ? add_nodes(w, s, custom, seen, out, error) : AOT_E_EXHAUSTED;
  }
  if (status == AOT_E_EXHAUSTED)
    kit_no_memory_text(error->text, sizeof error->text, "for the table of custom operators");
  free(seen);
  free(custom);
  return status;
}

void custom_program_deinit(custom_program_t *p) {
  for (uint32_t i = 0; i < p->n_nodes; i++) free(p->nodes[i].written);
  free(p->nodes);
  free(p->of_node);
  memset(p, 0, sizeof *p);
}

const custom_node_t *custom_find(const custom_program_t *p, uint32_t node) {
  return p->of_node && p->of_node[node] != CUSTOM_NONE ? &p->nodes[p->of_node[node]] : NULL;
}

aot_status_t custom_report(const custom_program_t *p, const aot_ext_report_t *report, aot_ctx_t *ctx) {
  if (p->n_nodes == 0) return AOT_OK;
  AOT_TRY(report->number(report, ctx, aot_str("copies-asked"), p->copies_asked, aot_str("")));
  return report->number(report, ctx, aot_str("copies-removed"), p->copies_removed, aot_str(""));
}

/* ---- a call ---- */

/* Memory of one call: tensors of arguments and results as the boundary has them. */
typedef struct call_room {
  aot_kernel_arg_t *args;
  aot_tensor_t *tensors, *results;
  const aot_tensor_t **lists;
  uint32_t n_tensors, n_listed;
} call_room_t;

static aot_tensor_t boundary_tensor(const rk_tensor_t *t) {
  return (aot_tensor_t){
      .data = t->data,
      .nbytes = t->nbytes,
      .dtype = t->dtype,
      .rank = t->rank,
      .device = AOT_DEVICE_CPU,
      .offset = t->offset,
      .sizes = t->sizes,
      .strides = t->strides,
  };
}

static const aot_tensor_t *put_tensor(call_room_t *r, const rk_tensor_t *t) {
  r->tensors[r->n_tensors] = boundary_tensor(t);
  return &r->tensors[r->n_tensors++];
}

static int make_room(call_room_t *r, const rk_arg_t *args, uint32_t n_args, uint32_t n_results) {
  uint32_t n = 0;
  for (uint32_t a = 0; a < n_args; a++)
    n += args[a].kind == AOT_ARG_VALUE ? 1 : args[a].kind == AOT_ARG_VALUES ? args[a].n : 0;
  memset(r, 0, sizeof *r);
  r->args = calloc((size_t)n_args + 1, sizeof *r->args);
  r->tensors = calloc((size_t)n + 1, sizeof *r->tensors);
  r->lists = calloc((size_t)n + 1, sizeof *r->lists);
  r->results = calloc((size_t)n_results + 1, sizeof *r->results);
  return r->args && r->tensors && r->lists && r->results;
}

static void give_room(call_room_t *r) {
  free(r->args);
  free(r->tensors);
  free(r->lists);
  free(r->results);
}

static void fill_args(call_room_t *r, const rk_arg_t *args, uint32_t n_args) {
  for (uint32_t a = 0; a < n_args; a++) {
    aot_kernel_arg_t *out = &r->args[a];
    out->kind = args[a].kind;
    out->n = args[a].n;
    switch (args[a].kind) {
      case AOT_ARG_NONE: break;
      case AOT_ARG_VALUE: out->u.tensor = put_tensor(r, args[a].u.tensor); break;
      case AOT_ARG_VALUES:
        out->u.tensors = r->lists + r->n_listed;
        for (uint32_t e = 0; e < args[a].n; e++)
          r->lists[r->n_listed++] = args[a].u.tensors[e] ? put_tensor(r, args[a].u.tensors[e]) : NULL;
        break;
      case AOT_ARG_FLOAT: out->u.f = args[a].u.f; break;
      case AOT_ARG_FLOATS: out->u.floats = args[a].u.floats; break;
      case AOT_ARG_STR: out->u.chars = args[a].u.chars; break;
      case AOT_ARG_INTS:
      case AOT_ARG_BOOLS: out->u.ints = args[a].u.ints; break;
      default: out->u.i = args[a].u.i;
    }
  }
}

static int same_memory(const rk_tensor_t *a, const rk_tensor_t *b) {
  return a->data == b->data && a->offset == b->offset;
}

static const rk_tensor_t *operand(const rk_arg_t *args, const custom_written_t *w) {
  return args[w->arg].kind == AOT_ARG_VALUE ? args[w->arg].u.tensor : args[w->arg].u.tensors[w->element];
}

static int same_shape(const rk_tensor_t *a, const rk_tensor_t *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0;
}

/* Written arguments point at their results, which hold a copy of what they held. */
static aot_status_t redirect(const custom_node_t *n, const rk_arg_t *args, rk_tensor_t *results, call_room_t *r,
                             rk_error_t *error) {
  for (uint32_t k = 0; k < n->n_written; k++) {
    const custom_written_t *w = &n->written[k];
    const uint32_t memory = w->same_as == CUSTOM_NONE ? k : w->same_as;
    rk_tensor_t *to = &results[n->n_own + memory];
    const rk_tensor_t *from = operand(args, w);
    const aot_tensor_t *seen =
        r->args[w->arg].kind == AOT_ARG_VALUE ? r->args[w->arg].u.tensor : r->args[w->arg].u.tensors[w->element];
    if (!same_shape(to, from)) {
      snprintf(error->text, sizeof error->text, "%.*s: the new value of written argument %u has another shape or dtype",
               (int)n->op->name.size, n->op->name.data, w->arg);
      return AOT_E_INVALID;
    }
    if (memory == k && !same_memory(to, from)) rk_copy(to, from);
    r->tensors[seen - r->tensors] = boundary_tensor(to);
  }
  return AOT_OK;
}

static aot_status_t call_kernel(const custom_node_t *n, uint32_t n_args, uint32_t n_results, call_room_t *r,
                                rk_error_t *error) {
  char message[MESSAGE_SIZE] = "";
  const aot_kernel_call_t call = {
      .struct_size = sizeof call,
      .n_args = n_args,
      .args = r->args,
      .results = r->results,
      .n_results = n_results,
      .message_size = sizeof message,
      .message = message,
  };
  const aot_float_env_t before = aot_float_env();
  const aot_status_t status = n->kernel->run(n->kernel, &call);
  const char *left = aot_float_env_change(before, aot_float_env());
  message[sizeof message - 1] = 0;
  if (left) aot_float_env_restore(before);
  if (left && status == AOT_OK) {
    snprintf(error->text, sizeof error->text, "%.*s: contract violation by its plugin: its kernel left %s",
             (int)n->op->name.size, n->op->name.data, left);
    return AOT_E_CONTRACT;
  }
  if (status != AOT_OK)
    snprintf(error->text, sizeof error->text, "%.*s: %s", (int)n->op->name.size, n->op->name.data,
             message[0] ? message : "its kernel failed and did not say why");
  return status;
}

aot_status_t custom_run(const custom_node_t *n, const rk_arg_t *args, uint32_t n_args, rk_tensor_t *results,
                        uint32_t n_results, rk_error_t *error) {
  call_room_t r;
  aot_status_t status = AOT_E_EXHAUSTED;
  args += n->first_arg;
  n_args -= n->first_arg;
  if (make_room(&r, args, n_args, n_results)) {
    fill_args(&r, args, n_args);
    for (uint32_t i = 0; i < n->n_own; i++) r.results[i] = boundary_tensor(&results[i]);
    status = redirect(n, args, results, &r, error);
    const int is_passed = n->passes && same_memory(&results[0], args[0].u.tensor);
    if (status == AOT_OK) status = call_kernel(n, n_args, is_passed ? 0 : n->n_own, &r, error);
    for (uint32_t k = 0; status == AOT_OK && k < n->n_written; k++)
      if (n->written[k].same_as != CUSTOM_NONE)
        rk_copy(&results[n->n_own + k], &results[n->n_own + n->written[k].same_as]);
  } else {
    kit_no_memory_text(error->text, sizeof error->text, "for a call of %.*s", (int)n->op->name.size, n->op->name.data);
  }
  give_room(&r);
  return status;
}

/* ---- on a queue ---- */

static const aot_ext_queue_kernel_t *on_queue(const custom_node_t *n) {
  return n->n_written ? NULL : aot_ext(&n->kernel->head, AOT_EXT_QUEUE_KERNEL);
}

/* The call as the boundary has it: device and queue, or neither to query whether it is used. */
static aot_status_t put_call(const custom_node_t *n, const rk_call_t *call, const aot_device_t *device,
                             aot_queue_t *queue, rk_error_t *error) {
  const aot_ext_queue_kernel_t *x = on_queue(n);
  char message[MESSAGE_SIZE] = "";
  call_room_t r;
  aot_status_t status = AOT_E_EXHAUSTED;
  if (make_room(&r, call->args + n->first_arg, call->n_args - n->first_arg, call->n_results)) {
    fill_args(&r, call->args + n->first_arg, call->n_args - n->first_arg);
    for (uint32_t i = 0; i < n->n_own; i++) r.results[i] = boundary_tensor(&call->results[i]);
    const aot_kernel_call_t given = {.struct_size = sizeof given,
                                     .n_args = call->n_args - n->first_arg,
                                     .args = r.args,
                                     .results = r.results,
                                     .n_results = n->n_own,
                                     .message_size = sizeof message,
                                     .message = message};
    if (queue) status = x->enqueue(x, &given, device, queue);
    else status = x->takes(x, &given) ? AOT_OK : AOT_E_UNIMPLEMENTED;
  }
  message[sizeof message - 1] = 0;
  if (status != AOT_OK && error)
    snprintf(error->text, sizeof error->text, "%.*s: %s", (int)n->op->name.size, n->op->name.data,
             message[0] ? message : "it cannot be put on the queue");
  give_room(&r);
  return status;
}

int custom_takes_queue(const custom_node_t *n, const rk_call_t *call) {
  return on_queue(n) && put_call(n, call, NULL, NULL, NULL) == AOT_OK;
}

aot_status_t custom_enqueue(const custom_node_t *n, const rk_call_t *call, const aot_device_t *device,
                            aot_queue_t *queue, rk_error_t *error) {
  return put_call(n, call, device, queue, error);
}

void custom_settle(const custom_program_t *p) {
  for (uint32_t i = 0; i < p->n_nodes; i++) {
    aot_kernel_t k;
    if (p->nodes[i].kernel->head.flags & AOT_KERNEL_STARTS && aot_import(&k, sizeof k, p->nodes[i].kernel) == AOT_OK &&
        k.settle)
      k.settle(p->nodes[i].kernel);
  }
}
