/* Every view and every writing operator of the table, whatever there is in it.
 *
 * A view: base -> view -> write through the view -> read the base; what the base must hold follows from the
 * view's declared geometry. An operator that writes: it writes into every second element of larger tensors, and must
 * leave there what its functional namesake computes, and nothing anywhere else. Arguments are made up from schemas
 * (call_text.h); what cannot be driven is listed with the reason, and counted. */
#include "call_text.h"
#include "workshop.h"

#include <aot/inline.h>
#include <ir/program.h>
#include <ir/tables.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TRIES 1500 /* combinations of arguments for one operator */
#define ENOUGH 3       /* of them that work */
#define MAX_RESULTS 8

typedef struct rows {
  const aot_op_desc_t **op; /* sorted by name */
  uint32_t n;
  ws_t shop;
  int n_driven, n_undriven, n_failed;
} rows_t;

static int by_name(const void *a, const void *b) {
  const aot_op_desc_t *p = *(const aot_op_desc_t *const *)a, *q = *(const aot_op_desc_t *const *)b;
  size_t n = p->name.size < q->name.size ? p->name.size : q->name.size;
  int order = memcmp(p->name.data, q->name.data, n);
  return order ? order : (p->name.size > q->name.size) - (p->name.size < q->name.size);
}

static void undriven(rows_t *r, const aot_op_desc_t *d, const char *why) {
  r->n_undriven++;
  printf("not driven: %.*s: %.*s\n", (int)d->name.size, d->name.data, (int)strcspn(why, "\n"), why);
}

static int failed(rows_t *r, const aot_op_desc_t *d, const char *why, const kit_text_t *program) {
  r->n_failed++;
  printf("FAILED %.*s: %s\n%s\n", (int)d->name.size, d->name.data, why, program->data);
  return 0;
}

/* ---- programs ---- */

/* Leaves and inputs; name: of the graph's inputs. Written ones are larger: rows of 2 n + 1, or three of a number. */
static aoth_tensor_t larger(const aoth_tensor_t *t) {
  aoth_tensor_t r = *t;
  r.rank = t->rank ? t->rank : 1;
  r.sizes[r.rank - 1] = t->rank ? 2 * t->sizes[t->rank - 1] + 1 : 3;
  aoth_tensor_contiguous(&r);
  r.nbytes = (uint64_t)aoth_tensor_numel(&r) * aot_dtype_size(t->dtype);
  return r;
}

/* Where the written tensor is in the larger one. */
static aoth_tensor_t inside(const aoth_tensor_t *t, const aoth_tensor_t *whole) {
  aoth_tensor_t r = *whole;
  r.rank = t->rank;
  memcpy(r.sizes, t->sizes, sizeof r.sizes);
  if (t->rank) r.strides[t->rank - 1] = 2;
  r.offset = 1;
  return r;
}

static void print_inputs(const aoth_tensor_t *t, int n, const char *name, kit_text_t *out) {
  kit_text_z(out, "aot 1\nproperties imported\n");
  for (int i = 0; i < n; i++) {
    kit_text_f(out, "leaf %d user_input %d \"x%d\" : ", i, i, i);
    ct_print_type(&t[i], out);
    kit_text_z(out, "\n");
  }
  kit_text_z(out, "graph @main forward {\n");
  for (int i = 0; i < n; i++) {
    kit_text_f(out, "  in %%%s%d = user_input %d : ", name, i, i);
    ct_print_type(&t[i], out);
    kit_text_z(out, "\n");
  }
}

static void print_results(const char *name, int n, kit_text_t *out) {
  kit_text_z(out, "  ");
  for (int i = 0; i < n; i++) kit_text_f(out, i ? ", %%%s%d" : "%%%s%d", name, i);
  kit_text_z(out, n ? " = " : "");
}

static int step_output(rows_t *r, int k, aoth_tensor_t *out) {
  char key[32];
  snprintf(key, sizeof key, "output.%d", k);
  return aoth_step_get(r->shop.step, key, out);
}

/* ---- views ---- */

static int same_number(int32_t dtype, const void *a, const void *b) {
  if (dtype == AOT_C128 || dtype == AOT_C64) return memcmp(a, b, aot_dtype_size(dtype)) == 0;
  double x = kit_element_load(dtype, a), y = kit_element_load(dtype, b);
  return fabs(x - y) <= 1e-12 * (1 + fabs(y)) || (isnan(x) && isnan(y)) || x == y;
}

static int same_numbers(const aoth_tensor_t *got, const aoth_tensor_t *want) {
  aoth_walk_t walk;
  if (got->dtype != want->dtype || !aoth_tensor_same_sizes(got, want)) return 0;
  aoth_walk_begin(&walk, got, want);
  for (; walk.left > 0; aoth_walk_next(&walk))
    if (!same_number(got->dtype, walk.at[0], walk.at[1])) return 0;
  return 1;
}

/* The type that result k of the first node has as imported. */
static int geometry_of(rows_t *r, int k, aoth_tensor_t *out) {
  aot_prog_t *p = aoth_session_prog(r->shop.session);
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_type_t t;
  if (aoth_graph_node_info(p, aoth_graph_first(p, aoth_graph_graph_find(p, AOT_GRAPH_FORWARD)), &info) != AOT_OK)
    return 0;
  if (aoth_graph_value_type(p, (aot_value_t){info.first_result.id + (uint32_t)k}, &t) != AOT_OK ||
      t.rank > AOT_MAX_RANK)
    return 0;
  *out = (aoth_tensor_t){.dtype = t.dtype, .rank = t.rank, .offset = t.offset};
  for (int32_t d = 0; d < t.rank; d++) out->sizes[d] = t.sizes[d], out->strides[d] = t.strides[d];
  return 1;
}

/* x becomes 1 - x at each place of the view, counted in `times`; 0: it has a place twice. */
static int write_through(const aoth_tensor_t *base, const aoth_tensor_t *view, char *storage) {
  char seen[CT_BYTES] = {0};
  aoth_tensor_t v = *view;
  aoth_walk_t walk;
  uint64_t size = aot_dtype_size(base->dtype);
  v.data = storage;
  v.nbytes = base->nbytes;
  aoth_walk_begin(&walk, &v, NULL);
  for (; walk.left > 0; aoth_walk_next(&walk)) {
    if (seen[(uint64_t)(walk.at[0] - storage) / size]++) return 0;
    if (base->dtype == AOT_C128) kit_element_store(AOT_F64, walk.at[0] + 8, -kit_element_load(AOT_F64, walk.at[0] + 8));
    kit_element_store(base->dtype == AOT_C128 ? AOT_F64 : base->dtype, walk.at[0],
                      base->dtype == AOT_BOOL ? !kit_element_load(AOT_BOOL, walk.at[0])
                                              : -kit_element_load(base->dtype, walk.at[0]));
  }
  return 1;
}

/* Such views PyTorch refuses to write; of others that overlap the result is without an owner promise. */
static int repeats(const aoth_tensor_t *view) {
  for (int32_t d = 0; d < view->rank; d++)
    if (view->strides[d] == 0 && view->sizes[d] > 1) return 1;
  return 0;
}

/* Does the same program run without writing? */
static int can_be_read(rows_t *r, const ct_call_t *c, const char *op, const aoth_tensor_t *given, int n_results,
                       int which, int is_bool) {
  kit_text_t ir = {0};
  print_inputs(given, c->n_inputs, "x", &ir);
  print_results("r", n_results, &ir);
  ct_print(c, op, "x", &ir);
  const char *reader = is_bool ? "aten.logical_not.default" : "aten.neg.default";
  kit_text_f(&ir, "\n  %%w = %s %%r%d\n  out user_output 0 = %%w\n}\n", reader, which);
  int ok = ws_compile(&r->shop, ir.data) && aoth_step_forward(r->shop.step, given, (uint32_t)c->n_inputs) == AOT_OK;
  kit_text_deinit(&ir);
  return ok;
}

/* 1: it worked; 0: these arguments do not fit; -1: it failed, which is reported. */
static int check_view(rows_t *r, ct_call_t *c, int n_results, int which, kit_text_t *ir) {
  char op[160], why[600], wanted[CT_BYTES];
  aoth_tensor_t given[CT_INPUTS], view, now, read;
  uint64_t reach;
  snprintf(op, sizeof op, "%.*s", (int)c->op->name.size, c->op->name.data);
  for (int i = 0; i < c->n_inputs; i++) given[i] = c->input[i].tensor;
  print_inputs(given, c->n_inputs, "x", ir);
  print_results("r", n_results, ir);
  ct_print(c, op, "x", ir);
  int is_bool = given[0].dtype == AOT_BOOL;
  kit_text_f(ir, "\n  %%w = %s %%r%d\n  %%base = aten.clone.default %%x0\n  out user_output 0 = %%base\n}\n",
             is_bool ? "aten.logical_not_.default" : "aten.neg_.default", which);
  if (strstr(ir->data, "copy=true") || !ws_import(&r->shop, ir->data) || !geometry_of(r, which, &view)) return 0;
  /* PyTorch does not check _reshape_alias */
  if (!aoth_tensor_extent(&view, &reach) || reach > given[0].nbytes) return 0;
  if (view.dtype != given[0].dtype) return 0; /* another dtype is a copy, or another look at the bytes */
  memcpy(wanted, given[0].data, sizeof wanted);
  int overlaps = !write_through(&given[0], &view, wanted);
  now = given[0];
  now.data = wanted;
  if (!ws_build(&r->shop) || (!overlaps && aoth_step_forward(r->shop.step, given, (uint32_t)c->n_inputs) != AOT_OK)) {
    if (strstr(ws_complaints(&r->shop), "a write through")) return overlaps; /* as PyTorch refuses */
    snprintf(why, sizeof why, "%s", ws_complaints(&r->shop));
    return can_be_read(r, c, op, given, n_results, which, is_bool) ? failed(r, c->op, why, ir) - 1 : 0;
  }
  if (overlaps)
    return repeats(&view) ? failed(r, c->op, "a write to places that the view shows twice is taken", ir) - 1 : 0;
  if (!step_output(r, 0, &read) || !same_numbers(&read, &now))
    return failed(r, c->op, "the base reads otherwise", ir) - 1;
  if (!aoth_step_get(r->shop.step, "input_after.0", &read) || !same_numbers(&read, &now))
    return failed(r, c->op, "the base is otherwise after the call", ir) - 1;
  return 1;
}

/* Any number of results up to four, the last one written. */
static int try_view(rows_t *r, ct_call_t *c) {
  int is_list = c->op->n_results == 1 && (c->op->results[0].flags & AOT_SARG_LIST);
  for (int n = 1; n <= (is_list ? 4 : 1); n++) {
    kit_text_t ir = {0};
    int outcome = check_view(r, c, n, n - 1, &ir);
    kit_text_deinit(&ir);
    if (outcome) return outcome;
  }
  return 0;
}

static void drive_view(rows_t *r, const aot_op_desc_t *d) {
  static ct_call_t c;
  char why[400] = "no arguments of its slots' kinds are known";
  int n_worked = 0;
  memset(&c, 0, sizeof c);
  c.op = d;
  c.vary_defaults = 1;
  for (int tries = 0; tries < MAX_TRIES && n_worked < 2 * ENOUGH; tries++) {
    if (ct_fill(&c) && c.n_inputs > 0) {
      int outcome = try_view(r, &c);
      if (outcome < 0) return;
      n_worked += outcome;
      if (!outcome) snprintf(why, sizeof why, "no arguments fit; the last: %s", ws_complaints(&r->shop));
    }
    if (!ct_next(&c)) break;
  }
  if (n_worked) r->n_driven++;
  else undriven(r, d, why);
}

/* ---- writers ---- */

static int same_name(aot_str_t a, aot_str_t b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

static int describes_result(aot_str_t name) {
  return aot_str_eq(name, aot_str("dtype")) || aot_str_eq(name, aot_str("layout")) ||
         aot_str_eq(name, aot_str("device")) || aot_str_eq(name, aot_str("pin_memory")) ||
         aot_str_eq(name, aot_str("memory_format"));
}

/* Do the arguments of f are in w, which has written ones besides? An out= form has no say about its result. */
static int takes_the_same(const aot_op_desc_t *w, const aot_op_desc_t *f, int in_place) {
  uint32_t i = 0, k = 0;
  if (f->flags & (AOT_OP_WRITES | AOT_OP_VIEW)) return 0;
  for (;;) {
    while (!in_place && i < w->n_args && ct_is_written(w, i)) i++;
    int both = i < w->n_args && k < f->n_args && same_name(w->args[i].name, f->args[k].name) &&
               w->args[i].type == f->args[k].type &&
               (w->args[i].flags & AOT_SARG_LIST) == (f->args[k].flags & AOT_SARG_LIST);
    if (both) i++, k++;
    else if (k < f->n_args && describes_result(f->args[k].name)) k++;
    else return i == w->n_args && k == f->n_args;
  }
}

/* aten.add_.Tensor -> aten.add.Tensor; aten.add.out -> aten.add.Tensor; NULL: there is no namesake with these
 * arguments. */
static const aot_op_desc_t *namesake(const rows_t *r, const aot_op_desc_t *w) {
  char stem[160];
  const char *dot = memchr(w->name.data, '.', w->name.size);
  const char *end = dot ? memchr(dot + 1, '.', w->name.size - (size_t)(dot + 1 - w->name.data)) : NULL;
  if (!end) return NULL;
  int in_place = end[-1] == '_';
  snprintf(stem, sizeof stem, "%.*s.", (int)(end - in_place - w->name.data), w->name.data);
  uint32_t low = 0, high = r->n, n = (uint32_t)strlen(stem);
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    aot_str_t name = r->op[middle]->name;
    int order = memcmp(name.data, stem, name.size < n ? name.size : n);
    if (order < 0 || (order == 0 && name.size < n)) low = middle + 1;
    else high = middle;
  }
  for (; low < r->n && r->op[low]->name.size > n && memcmp(r->op[low]->name.data, stem, n) == 0; low++)
    if (takes_the_same(w, r->op[low], in_place)) return r->op[low];
  return NULL;
}

typedef struct outcome {
  ct_input_t result[MAX_RESULTS]; /* what the namesake computes */
  int n;
} outcome_t;

static int keep(const aoth_tensor_t *t, ct_input_t *out) {
  out->tensor = aoth_tensor_make(out->data, t->dtype, t->rank, t->sizes);
  if (out->tensor.nbytes > CT_BYTES) return 0;
  aoth_tensor_copy(&out->tensor, t);
  return 1;
}

/* The namesake alone on the call's inputs. */
static int compute(rows_t *r, ct_call_t *c, const aot_op_desc_t *f, outcome_t *out) {
  char op[160];
  aoth_tensor_t given[CT_INPUTS], result;
  kit_text_t ir = {0};
  out->n = 0;
  /* lists are of two */
  for (uint32_t k = 0; k < f->n_results; k++) out->n += f->results[k].flags & AOT_SARG_LIST ? 2 : 1;
  snprintf(op, sizeof op, "%.*s", (int)f->name.size, f->name.data);
  for (int i = 0; i < c->n_inputs; i++) given[i] = c->input[i].tensor;
  print_inputs(given, c->n_inputs, "x", &ir);
  print_results("r", out->n, &ir);
  ct_print(c, op, "x", &ir);
  for (int k = 0; k < out->n; k++) kit_text_f(&ir, "\n  out user_output %d = %%r%d", k, k);
  kit_text_z(&ir, "\n}\n");
  int ok = out->n > 0 && out->n <= MAX_RESULTS && ws_compile(&r->shop, ir.data);
  ok = ok && aoth_step_forward(r->shop.step, given, (uint32_t)c->n_inputs) == AOT_OK;
  for (int k = 0; ok && k < out->n; k++)
    ok = step_output(r, k, &result) && result.dtype && aoth_tensor_numel(&result) > 0 && keep(&result, &out->result[k]);
  kit_text_deinit(&ir);
  return ok;
}

/* The tensors of an out= form follows the others. */
static int add_out_inputs(ct_call_t *c, const outcome_t *o) {
  for (int k = 0; k < o->n; k++) {
    if (c->n_inputs == CT_INPUTS) return 0;
    ct_input_t *in = &c->input[c->n_inputs];
    *in = o->result[k];
    in->tensor.data = in->data;
    in->is_written = 1;
    ct_values(&in->tensor, c->n_inputs++);
  }
  return 1;
}

static int fits(const aoth_tensor_t *to, const aoth_tensor_t *result) {
  int from_whole = result->dtype == AOT_BOOL || result->dtype == AOT_I64;
  int to_number = to->dtype == AOT_F64 || to->dtype == AOT_I64;
  return aoth_tensor_same_sizes(to, result) && (to->dtype == result->dtype || (from_whole && to_number));
}

static void put_converted(const aoth_tensor_t *to, const aoth_tensor_t *from) {
  aoth_walk_t walk;
  if (to->dtype == from->dtype) {
    aoth_tensor_copy(to, from);
    return;
  }
  aoth_tensor_t index = *from; /* another element size: walked apart */
  aoth_walk_t source;
  aoth_walk_begin(&walk, to, NULL);
  for (aoth_walk_begin(&source, &index, NULL); walk.left > 0; aoth_walk_next(&walk), aoth_walk_next(&source))
    kit_element_store(to->dtype, walk.at[0], kit_element_load(from->dtype, source.at[0]));
}

typedef struct written {
  aoth_tensor_t given[CT_INPUTS]; /* what the program is called with */
  aoth_tensor_t wanted[CT_INPUTS];
  char before[CT_INPUTS][2 * CT_BYTES], after[CT_INPUTS][2 * CT_BYTES];
} written_t;

/* Larger tensors for the written ones, and what they must hold after the call. */
static int prepare(const ct_call_t *c, const outcome_t *o, written_t *x) {
  int k = 0;
  for (int i = 0; i < c->n_inputs; i++) {
    const ct_input_t *in = &c->input[i];
    x->given[i] = x->wanted[i] = in->tensor;
    if (!in->is_written) continue;
    x->given[i] = larger(&in->tensor);
    if (x->given[i].nbytes > sizeof x->before[i] || k == o->n || !fits(&in->tensor, &o->result[k].tensor)) return 0;
    x->given[i].data = x->before[i];
    ct_values(&x->given[i], i + 5);
    aoth_tensor_t part = inside(&in->tensor, &x->given[i]);
    aoth_tensor_copy(&part, &in->tensor);
    memcpy(x->after[i], x->before[i], sizeof x->after[i]);
    x->wanted[i] = x->given[i];
    x->wanted[i].data = x->after[i];
    part = inside(&in->tensor, &x->wanted[i]);
    put_converted(&part, &o->result[k++].tensor);
  }
  return k == o->n;
}

static void print_writer(const ct_call_t *c, const written_t *x, const aot_op_desc_t *w, int in_place, kit_text_t *ir) {
  int n_results = 0, n_written = 0;
  print_inputs(x->given, c->n_inputs, "whole", ir);
  for (int i = 0; i < c->n_inputs; i++) {
    const aoth_tensor_t *t = &c->input[i].tensor;
    if (!c->input[i].is_written) kit_text_f(ir, "  %%x%d = aten.alias.default %%whole%d\n", i, i);
    else if (t->rank == 0) kit_text_f(ir, "  %%x%d = aten.select.int %%whole%d, 0, 1\n", i, i);
    else
      kit_text_f(ir, "  %%x%d = aten.slice.Tensor %%whole%d, -1, 1, %lld, 2\n", i, i,
                 2 * (long long)t->sizes[t->rank - 1] + 1);
  }
  for (uint32_t k = 0; k < w->n_results; k++) n_results += w->results[k].flags & AOT_SARG_LIST ? 2 : 1;
  print_results("r", n_results, ir);
  char op[160];
  snprintf(op, sizeof op, "%.*s", (int)w->name.size, w->name.data);
  ct_print(c, op, "x", ir);
  int k = c->n_inputs;
  for (int i = 0; i < c->n_inputs; i++) n_written += c->input[i].is_written;
  k -= n_written;
  for (uint32_t a = 0; !in_place && a < w->n_args; a++) {
    if (!ct_is_written(w, a)) continue;
    kit_text_f(ir, ", %.*s=", (int)w->args[a].name.size, w->args[a].name.data);
    if (w->args[a].flags & AOT_SARG_LIST) kit_text_f(ir, "[%%x%d, %%x%d]", k, k + 1), k += 2;
    else kit_text_f(ir, "%%x%d", k), k++;
  }
  kit_text_z(ir, "\n");
  for (int i = 0, n = 0; i < c->n_inputs; i++) {
    if (!c->input[i].is_written) continue;
    kit_text_f(ir, "  %%now%d = aten.clone.default %%whole%d\n  out user_output %d = %%now%d\n", i, i, n++, i);
  }
  kit_text_z(ir, "}\n");
}

/* 1: it worked; 0: these arguments do not fit; -1: it failed. */
static int check_writer(rows_t *r, ct_call_t *c, const aot_op_desc_t *w, const aot_op_desc_t *f, kit_text_t *ir) {
  static outcome_t o;
  static written_t x;
  int in_place = c->skip == 0;
  if (!compute(r, c, f, &o) || (!in_place && !add_out_inputs(c, &o)) || !prepare(c, &o, &x)) return 0;
  print_writer(c, &x, w, in_place, ir);
  if (!ws_compile(&r->shop, ir->data)) return failed(r, w, ws_complaints(&r->shop), ir) - 1;
  if (aoth_step_forward(r->shop.step, x.given, (uint32_t)c->n_inputs) != AOT_OK)
    return failed(r, w, ws_complaints(&r->shop), ir) - 1;
  for (int i = 0, n = 0; i < c->n_inputs; i++) {
    aoth_tensor_t read;
    char key[32];
    if (!c->input[i].is_written) continue;
    if (!step_output(r, n++, &read) || !same_numbers(&read, &x.wanted[i]))
      return failed(r, w, "a written tensor reads otherwise", ir) - 1;
    snprintf(key, sizeof key, "input_after.%d", i);
    if (!aoth_step_get(r->shop.step, key, &read) || !same_numbers(&read, &x.wanted[i]))
      return failed(r, w, "a written tensor is otherwise after the call", ir) - 1;
  }
  return 1;
}

static void drive_writer(rows_t *r, const aot_op_desc_t *w) {
  static ct_call_t c;
  const aot_op_desc_t *f = namesake(r, w);
  char why[400] = "no arguments of its slots' kinds are known";
  int n_worked = 0;
  if (!f) {
    undriven(r, w, "no operator of this name computes it without writing");
    return;
  }
  memset(&c, 0, sizeof c);
  c.op = w;
  for (uint32_t a = 0; a < w->n_args && a < 32; a++)
    if (ct_is_written(w, a) && (w->args[a].flags & AOT_SARG_KWONLY)) c.skip |= 1u << a;
  for (int tries = 0; tries < MAX_TRIES && n_worked < ENOUGH; tries++) {
    kit_text_t ir = {0};
    int outcome = ct_fill(&c) ? check_writer(r, &c, w, f, &ir) : 0;
    kit_text_deinit(&ir);
    if (outcome < 0) return;
    n_worked += outcome;
    if (!outcome && r->shop.sink) snprintf(why, sizeof why, "no arguments fit; the last: %s", ws_complaints(&r->shop));
    if (!ct_next(&c)) break;
  }
  if (n_worked) r->n_driven++;
  else undriven(r, w, why);
}

/* ---- the table ---- */

static int read_table(rows_t *r) {
  if (!ws_import(&r->shop, "aot 1\nproperties imported\ngraph @main forward {\n}\n")) return 0;
  const aoth_ops_t *ops = aoth_session_ops(r->shop.session);
  r->n = aoth_ops_count(ops) - 1;
  r->op = malloc((r->n + 1) * sizeof *r->op);
  for (uint32_t i = 0; r->op && i < r->n; i++) r->op[i] = aoth_ops_desc(ops, (aot_op_t){i + 1});
  if (r->op) qsort(r->op, r->n, sizeof *r->op, by_name);
  return r->op != NULL;
}

static void drive(rows_t *r, const aot_op_desc_t *d) {
  if (d->flags & AOT_OP_WRITES) {
    if (d->flags & AOT_OP_INPLACE_VIEW) undriven(r, d, "changes a shape, not numbers: functionalize_differ");
    else if (d->flags & (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE))
      undriven(r, d, "draws numbers, has effects or talks to others");
    else drive_writer(r, d);
  } else if (d->flags & AOT_OP_VIEW) {
    drive_view(r, d);
  }
}

int main(void) {
  static rows_t table = {.shop = {.stages = "functionalize backend-ref"}},
                r = {.shop = {.stages = "functionalize backend-ref"}};
  if (!read_table(&table)) return printf("no table: %s\n", ws_complaints(&table.shop)), 1;
  r.op = table.op; /* its session stays open */
  r.n = table.n;
  for (uint32_t i = 0; i < r.n; i++) drive(&r, r.op[i]);
  printf("%d operators driven, %d failed, %d not driven\n", r.n_driven, r.n_failed, r.n_undriven);
  ws_close(&r.shop);
  free(table.op);
  ws_close(&table.shop);
  return r.n_failed != 0 || r.n_undriven * 4 > r.n_driven; /* made-up arguments that no longer fit would test nothing */
}
