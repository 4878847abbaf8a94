/* Every row of ops.def is complete, and says nothing that its schema contradicts. */
#include "at_row.h"
#include "infer_case.h"
#include "rewrites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static unsigned n_bad;

static void bad(const at_row_t *row, const char *what) {
  print_message("%s: %s\n", row->name, what);
  n_bad++;
}

static int writes(const aot_op_desc_t *d) {
  uint32_t i;
  for (i = 0; i < d->n_args; i++)
    if (d->args[i].flags & AOT_SARG_WRITE) return 1;
  return 0;
}

static int views(const aot_op_desc_t *d) {
  uint32_t i, k;
  for (i = 0; i < d->n_args; i++)
    for (k = 0; k < d->n_results; k++)
      if (d->args[i].alias_set != 0 && d->args[i].alias_set == d->results[k].alias_set &&
          !(d->args[i].flags & AOT_SARG_WRITE))
        return 1;
  return 0;
}

static uint32_t row_of(const char *name) {
  uint32_t i;
  for (i = 0; i < AT_N_OPS && strcmp(at_rows[i].name, name) != 0; i++) continue;
  return i;
}

/* The twin without the write takes the same arguments by name, type and order, but for those that results are
 * written to. */
static void check_twin(const at_row_t *row, const aot_op_desc_t *d) {
  const uint32_t given = AOT_SARG_WRITE | AOT_SARG_KWONLY;
  uint32_t twin = row_of(row->functional), i, n = 0;
  const aot_op_desc_t *t;
  if (twin == AT_N_OPS) {
    bad(row, ".functional names no operator of the set");
    return;
  }
  t = case_desc(twin);
  if (writes(t)) bad(row, ".functional writes, too");
  for (i = 0; i < d->n_args; i++) {
    if ((d->args[i].flags & given) == given) continue;
    if (n < t->n_args && d->args[i].type != t->args[n].type) bad(row, ".functional takes arguments of other types");
    n++;
  }
  if (n > t->n_args) bad(row, ".functional takes fewer arguments");
  for (; n < t->n_args; n++)
    if (!(t->args[n].flags & AOT_SARG_HAS_DEFAULT)) bad(row, ".functional takes more arguments");
}

static int has_known_namespace(const char *name) {
  static const char *const known[] = {"aten.",         "aot.",
                                      "higher_order.", "_c10d_functional.",
                                      "rngprims.",     "prims.",
                                      "fsdp.",         "inductor.",
                                      "transformers.", "quantized_decomposed.",
                                      "_operator.",    "math.",
                                      "torch."}; /* the last three: Python's own, on numbers */
  size_t i;
  for (i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strncmp(name, known[i], strlen(known[i])) == 0) return 1;
  return 0;
}

static void rows_are_complete(void **state) {
  uint32_t i;
  (void)state;
  n_bad = 0;
  for (i = 0; i < AT_N_OPS; i++) {
    const at_row_t *row = &at_rows[i];
    const aot_op_desc_t *d = case_desc(i); /* stops when the schema does not parse */
    size_t namespace_size = strcspn(row->name, ".");
    if (!has_known_namespace(row->name)) bad(row, "the namespace is not one of ours");
    if (strncmp(row->name, "higher_order.", 13) != 0 && strcmp(row->group, "number") != 0 &&
        strchr(row->name + namespace_size + 1, '.') == NULL)
      bad(row, "the name has no overload");
    if (row->infer == NULL) bad(row, "no shape rule");
    if (row->doc == NULL || row->doc[0] == '\0') bad(row, "no doc");
    if (row->group == NULL || row->group[0] == '\0') bad(row, "no group");
    if ((row->flags & AOT_OP_COMPOSITE) && row->decompose == NULL) bad(row, "COMPOSITE without .decompose");
    if (views(d) && row->inverse == NULL) bad(row, "a view without .inverse");
    if (!views(d) && row->inverse != NULL && row->sharing == NULL)
      bad(row, ".inverse, but nothing says that it is a view");
    if (!views(d) && row->sharing != NULL && !(row->flags & (AOT_OP_COMPOSITE | AOT_OP_COLLECTIVE)) &&
        row->inverse == NULL)
      bad(row, ".sharing without .inverse, and no COMPOSITE");
    if ((row->flags & AOT_OP_STORAGE) && row->functional == NULL) continue; /* functionalize knows what it means */
    if (writes(d) != (row->functional != NULL || row->functional_by != NULL))
      bad(row, writes(d) ? "writes without .functional" : ".functional, but the schema shows no write");
    if (row->functional != NULL && row->functional_by != NULL) bad(row, "both .functional and .functional_by");
    if (row->functional != NULL) check_twin(row, d);
    if ((row->flags & AOT_OP_INPLACE_VIEW) && !writes(d)) bad(row, "INPLACE_VIEW without a written argument");
    if (row->write_if != NULL && !writes(d)) bad(row, ".write_if without a written argument");
    if (row_of(row->name) != i) bad(row, "stands twice");
  }
  assert_int_equal(n_bad, 0);
}

/* What PyTorch's naming promises: x_, and __ix__ of Python's operators, write and return their first argument; a
 * written list is not returned, nor what operators next to ATen's write. */
static void names_agree_with_schemas(void **state) {
  uint32_t i;
  (void)state;
  n_bad = 0;
  for (i = 0; i < AT_N_OPS; i++) {
    const at_row_t *row = &at_rows[i];
    const aot_op_desc_t *d = case_desc(i);
    const char *op = strchr(row->name, '.') + 1;
    size_t n = strcspn(op, ".");
    if (strcmp(row->group, "number") == 0) continue; /* and_, or_ are Python's */
    if (row->flags & AOT_OP_STORAGE) continue;       /* PyTorch's schemas of these say nothing of what they do */
    if (strncmp(op, "__", 2) == 0 ? op[2] == 'i' && n > 6 : n > 1 && op[n - 1] == '_') {
      if (!(d->args[0].flags & AOT_SARG_WRITE))
        bad(row, "named like an in-place operator, but does not write its first argument");
      if (d->n_results == 0 && ((d->args[0].flags & AOT_SARG_LIST) || strncmp(row->name, "aten.", 5) != 0)) continue;
      if (d->n_results != 1 || d->results[0].alias_set != d->args[0].alias_set)
        bad(row, "does not return what it writes");
    }
  }
  assert_int_equal(n_bad, 0);
}

/* Derived rows have PyTorch's schemas. */
static void forms_follow_from_the_functional_operator(void **state) {
  static const struct {
    const char *name, *schema;
  } rows[] = {
      {"aten.add.out", "(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"},
      {"aten.atan2.out", "(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)"},
      {"aten.zeros.out", "(int[] size, *, Tensor(a!) out) -> Tensor(a!)"},
      {"aten.max.dim_max", "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> "
                           "(Tensor(a!), Tensor(b!))"},
      {"aten.unbind_copy.int_out", "(Tensor self, int dim=0, *, Tensor(a!)[] out) -> ()"},
      {"aten.atan2_.default", "(Tensor(a!) self, Tensor other) -> Tensor(a!)"},
      {"aten._foreach_add_.List", "(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()"},
      {"aten._amp_foreach_non_finite_check_and_unscale_.default",
       "(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()"},
  };
  size_t i;
  (void)state;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint32_t row = row_of(rows[i].name);
    if (row == AT_N_OPS) fail_msg("no row %s", rows[i].name);
    assert_string_equal(case_desc(row)->schema.data, rows[i].schema);
  }
}

/* The ids of ops.def count its rows. */
static void ids_count_rows(void **state) {
  (void)state;

  assert_true(row_of("aten.add.Tensor") == AT_OP_add_Tensor);
  assert_true(row_of("higher_order.cond") == AT_OP_higher_order_cond);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_complete), cmocka_unit_test(names_agree_with_schemas),
                                     cmocka_unit_test(forms_follow_from_the_functional_operator),
                                     cmocka_unit_test(ids_count_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
