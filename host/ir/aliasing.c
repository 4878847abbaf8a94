#include <ir/aliasing.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <stdio.h>
#include <stdlib.h>

static void print_dims(const int64_t *dims, int32_t n, kit_text_t *out) {
  kit_text_z(out, "[");
  for (int32_t d = 0; d < n; d++) kit_text_f(out, "%s%lld", d ? ", " : "", (long long)dims[d]);
  kit_text_z(out, "]");
}

static void print_view(const aoth_alias_row_t *r, kit_text_t *out) {
  int64_t dense = 1;
  int is_contiguous = 1;
  for (int32_t d = r->rank - 1; d >= 0; d--) {
    if (r->strides[d] != dense) is_contiguous = 0;
    dense *= r->sizes[d] ? r->sizes[d] : 1;
  }
  kit_text_f(out, "input.%u = ", r->input);
  print_dims(r->sizes, r->rank, out);
  if (!is_contiguous) {
    kit_text_z(out, " strides ");
    print_dims(r->strides, r->rank, out);
  }
  if (r->offset) kit_text_f(out, " offset %lld", (long long)r->offset);
}

void aoth_aliasing_print(const aoth_aliasing_t *a, kit_text_t *out) {
  const char *between = "";
  for (uint32_t i = 0; i < a->n_rows; i++) {
    const aoth_alias_row_t *r = &a->rows[i];
    int is_next = r->is_view && i > 0 && a->rows[i - 1].of == r->of;
    kit_text_z(out, is_next ? ", " : between);
    if (r->is_view && !is_next)
      kit_text_f(out, "base.%u %s[%lld]: ", r->of, aot_dtype_name(a->bases[r->of].dtype),
                 (long long)a->bases[r->of].n_elements);
    if (r->is_view) print_view(r, out);
    else kit_text_f(out, "input.%u = input.%u", r->input, r->of);
    between = "; ";
  }
}

/* ---- putting it into a program ---- */

typedef struct applier {
  aot_prog_t *p;
  const aoth_aliasing_t *a;
  aot_leaf_t *inputs; /* by number of the user input */
  aot_leaf_t *bases;
  uint32_t n_inputs;
} applier_t;

static aot_status_t leaf_of(const applier_t *k, aot_leaf_t leaf, aot_leaf_info_t *out) {
  *out = (aot_leaf_info_t){.struct_size = sizeof *out};
  return aoth_graph_leaf_info(k->p, leaf, out);
}

static aot_status_t find_inputs(applier_t *k) {
  uint32_t n = aoth_graph_n_leaves(k->p);
  aot_leaf_info_t info;
  for (uint32_t i = 1; i < n; i++) {
    AOT_TRY(leaf_of(k, (aot_leaf_t){i}, &info));
    if (info.role != AOT_ROLE_USER_INPUT || info.ordinal >= n) continue;
    k->inputs[info.ordinal] = (aot_leaf_t){i};
    if (info.ordinal + 1 > k->n_inputs) k->n_inputs = info.ordinal + 1;
  }
  return AOT_OK;
}

/* A base requires a gradient if a view of it does. */
static aot_status_t make_base(applier_t *k, uint32_t base) {
  const aoth_alias_base_t *b = &k->a->bases[base];
  int64_t stride = 1;
  char name[32];
  snprintf(name, sizeof name, "base.%u", base);
  aot_str_t names[1] = {aot_str(name)};
  aot_leaf_info_t leaf =
                      {
                          .struct_size = sizeof leaf,
                          .role = AOT_ROLE_USER_INPUT,
                          .ordinal = k->n_inputs + base,
                          .n_names = 1,
                          .names = names,
                      },
                  member;
  leaf.type =
      (aot_type_t){.kind = AOT_TYPE_TENSOR, .dtype = b->dtype, .rank = 1, .sizes = &b->n_elements, .strides = &stride};
  for (uint32_t i = 0; i < k->a->n_rows; i++) {
    const aoth_alias_row_t *r = &k->a->rows[i];
    if (!r->is_view || r->of != base) continue;
    AOT_TRY(leaf_of(k, k->inputs[r->input], &member));
    leaf.flags |= member.flags & AOT_LEAF_REQUIRES_GRAD;
    leaf.type.device = member.type.device;
    leaf.type.device_index = member.type.device_index;
  }
  return aoth_edit_leaf_create(k->p, &leaf, &k->bases[base]);
}

static aot_status_t add_rule(applier_t *k, const aoth_alias_row_t *r) {
  aot_rule_t rule = {.kind = r->is_view ? AOT_RULE_ENTRY_VIEW : AOT_RULE_ENTRY_SAME, .a = k->inputs[r->input].id};
  aot_leaf_info_t leaf;
  AOT_TRY(leaf_of(k, k->inputs[r->input], &leaf));
  rule.b = r->is_view ? k->bases[r->of].id : k->inputs[r->of].id;
  if (r->is_view) {
    rule.rank = r->rank;
    rule.sizes = leaf.type.sizes;
    rule.strides = r->as_declared ? leaf.type.strides : r->strides;
    rule.offset = r->offset;
  }
  return aoth_edit_rule_add(k->p, &rule);
}

static aot_status_t apply(applier_t *k) {
  AOT_TRY(find_inputs(k));
  for (uint32_t b = 0; b < k->a->n_bases; b++) AOT_TRY(make_base(k, b));
  for (uint32_t i = 0; i < k->a->n_rows; i++) AOT_TRY(add_rule(k, &k->a->rows[i]));
  return AOT_OK;
}

aot_status_t aoth_aliasing_apply(aot_prog_t *p, const aoth_aliasing_t *a) {
  applier_t k = {.p = p, .a = a};
  k.inputs = calloc((size_t)aoth_graph_n_leaves(p) + 1, sizeof *k.inputs);
  k.bases = calloc((size_t)a->n_bases + 1, sizeof *k.bases);
  aot_status_t status = k.inputs && k.bases ? apply(&k) : AOT_E_EXHAUSTED;
  free(k.inputs);
  free(k.bases);
  return status;
}
