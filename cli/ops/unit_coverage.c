/* Asking units what they make of operators. Whatever they answer is copied: it outlives the unit. */
#include <cli/ops/unit_coverage.h>

#include <aot/ext/coverage.h>
#include <aot/ext/uncovered.h>
#include <aot/inline.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 1000000u

static int compare_names(const void *a, const void *b) {
  const aot_str_t x = *(const aot_str_t *)a, y = *(const aot_str_t *)b;
  const size_t n = (size_t)(x.size < y.size ? x.size : y.size);
  const int order = n ? memcmp(x.data, y.data, n) : 0;
  return order ? order : (x.size > y.size) - (x.size < y.size);
}

typedef struct query {
  const aoth_instance_t *instance;
  kit_arena_t *arena;
  aoth_coverage_t *out;
} query_t;

static int copy_name(kit_arena_t *arena, aot_str_t name, aot_str_t *out) {
  const char *text = kit_arena_text(arena, name.data ? name.data : "", (size_t)name.size);
  if (text) *out = aot_str(text);
  return text != NULL;
}

static aot_status_t room_for_names(query_t *a, uint64_t n) {
  a->out->n_ops = n < MAX_NAMES ? (uint32_t)n : MAX_NAMES;
  a->out->ops = kit_arena_alloc(a->arena, sizeof(void *), ((size_t)a->out->n_ops + 1u) * sizeof *a->out->ops);
  return a->out->ops ? AOT_OK : AOT_E_EXHAUSTED;
}

static aot_status_t ask_covered(query_t *a) {
  const aot_opset_t *opset = strcmp(a->instance->unit->kind, "opset/1") == 0 ? &a->instance->table.opset : NULL;
  aot_ext_coverage_t said;
  const aot_status_t status = aoth_instance_extension(a->instance, AOT_EXT_COVERAGE, &said, sizeof said);
  const int is_said = status == AOT_OK;
  if (status != AOT_E_NOT_FOUND) AOT_TRY(status);
  if (!is_said && !opset) return AOT_OK;
  AOT_TRY(room_for_names(a, is_said ? said.n_ops : opset->n_ops));
  for (uint32_t k = 0; k < a->out->n_ops; k++)
    if (!copy_name(a->arena, is_said ? said.ops[k] : opset->ops[k]->name, &a->out->ops[k])) return AOT_E_EXHAUSTED;
  qsort(a->out->ops, a->out->n_ops, sizeof *a->out->ops, compare_names);
  a->out->told = 1;
  return AOT_OK;
}

static aot_status_t ask_left_out(query_t *a) {
  aot_ext_uncovered_t said;
  const aot_status_t status = aoth_instance_extension(a->instance, AOT_EXT_UNCOVERED, &said, sizeof said);
  if (status == AOT_E_NOT_FOUND) return AOT_OK;
  AOT_TRY(status);
  const uint32_t n = said.n_ops < MAX_NAMES ? (uint32_t)said.n_ops : MAX_NAMES;
  aoth_left_out_t *rows = kit_arena_alloc(a->arena, sizeof(void *), ((size_t)n + 1u) * sizeof *rows);
  if (!rows) return AOT_E_EXHAUSTED;
  for (uint32_t k = 0; k < n; k++)
    if (!copy_name(a->arena, said.ops[k], &rows[k].op) || !copy_name(a->arena, said.reasons[k], &rows[k].reason))
      return AOT_E_EXHAUSTED;
  qsort(rows, n, sizeof *rows, compare_names); /* a row starts with its name */
  a->out->left_out = rows;
  a->out->n_left_out = n;
  return AOT_OK;
}

static aot_status_t do_ask(void *arg) {
  query_t *a = arg;
  AOT_TRY(ask_covered(a));
  return ask_left_out(a);
}

int aoth_unit_needs_options(const aoth_unit_t *unit) {
  for (uint64_t i = 0; i < unit->desc.n_options; i++)
    if (unit->options[i].flags & AOT_OPT_REQUIRED) return 1;
  return 0;
}

aot_status_t aoth_unit_coverage(aoth_session_t *s, const aoth_unit_t *unit, aoth_coverage_t *out) {
  aoth_stage_t stage;
  aoth_instance_t instance;
  *out = (aoth_coverage_t){.unit = unit};
  if (aoth_unit_needs_options(unit)) return AOT_OK;
  AOT_TRY(aoth_stage_of_unit(s, unit->id, unit->kind, NULL, &stage));
  AOT_TRY(aoth_instance_create(s, &stage, &instance));
  query_t a = {&instance, s->arena, out};
  if (aoth_call(s, &stage, "coverage", do_ask, &a) != AOT_OK) return aoth_session_fail(s, &stage);
  aoth_instance_destroy(s, &stage, &instance);
  return AOT_OK;
}

int aoth_covers(const aoth_coverage_t *c, aot_str_t op) {
  return c->n_ops && bsearch(&op, c->ops, c->n_ops, sizeof op, compare_names) != NULL;
}

const char *aoth_left_out_because(const aoth_coverage_t *c, aot_str_t op) {
  const aoth_left_out_t *row =
      c->n_left_out ? bsearch(&op, c->left_out, c->n_left_out, sizeof *row, compare_names) : NULL;
  return row ? row->reason.data : NULL;
}

/* ---- opsets ---- */

typedef struct opset_asking {
  const aoth_instance_t *opset;
  kit_arena_t *arena;
  aot_op_info_t *out; /* of the opset's first operator */
} opset_asking_t;

static aot_status_t do_ask_opset(void *arg) {
  opset_asking_t *a = arg;
  aot_ext_opset_info_t said;
  const aot_status_t status = aoth_instance_extension(a->opset, AOT_EXT_OPSET_INFO, &said, sizeof said);
  if (status == AOT_E_NOT_FOUND) return AOT_OK;
  AOT_TRY(status);
  const uint64_t n = said.n_ops < a->opset->table.opset.n_ops ? said.n_ops : a->opset->table.opset.n_ops;
  aot_import_rows(a->out, sizeof *a->out, said.ops, said.op_stride, n);
  for (uint64_t i = 0; i < n; i++) {
    if (!copy_name(a->arena, a->out[i].shape_rule, &a->out[i].shape_rule) ||
        !copy_name(a->arena, a->out[i].functional, &a->out[i].functional))
      return AOT_E_EXHAUSTED;
  }
  return AOT_OK;
}

aot_status_t aoth_opset_infos(aoth_session_t *s, aot_op_info_t **out) {
  const size_t n = aoth_ops_count(s->ops);
  aot_op_info_t *infos = kit_arena_alloc(s->arena, sizeof(void *), (n + 1u) * sizeof *infos);
  if (!infos) return AOT_E_EXHAUSTED;
  memset(infos, 0, (n + 1u) * sizeof *infos);
  *out = infos;
  infos++;
  for (uint32_t i = 0; i < s->n_opsets; i++) { /* ids count the operators of the opsets in the order they were opened */
    const aoth_instance_t *opset = &s->opsets[i];
    opset_asking_t a = {opset, s->arena, infos};
    aoth_stage_t stage;
    AOT_TRY(aoth_stage_of_unit(s, opset->unit->id, "opset/1", NULL, &stage));
    if (aoth_call(s, &stage, "opset-info", do_ask_opset, &a) != AOT_OK) return aoth_session_fail(s, &stage);
    infos += opset->table.opset.n_ops;
  }
  return AOT_OK;
}
