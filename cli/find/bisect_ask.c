#include <cli/find/bisect.h>

#include <ir/tables.h>
#include <string.h>

const char *aoth_bisect_bound(const aoth_bisect_t *b, const aoth_oracle_answer_t *a, char *why, size_t size) {
  if (a->end != AOTH_ORACLE_RAN) return NULL;
  if (b->max_ms > 0 && a->ms > b->max_ms) {
    snprintf(why, size, "a step takes %.4g ms, the bound is %.4g ms", a->ms, b->max_ms);
    return "time";
  }
  if (!b->max_peak || a->peak <= b->max_peak) return NULL;
  snprintf(why, size, "a step takes %llu bytes, the bound is %llu", (unsigned long long)a->peak,
           (unsigned long long)b->max_peak);
  return "memory";
}

const char *aoth_bisect_ask(aoth_bisect_t *b, aoth_oracle_prepare_t prepare, void *self, int *out_unfit, char *why,
                            size_t size) {
  aoth_oracle_answer_t a;
  aoth_difference_t d;
  const char *wrong = NULL;
  b->n_asked++;
  aoth_oracle_ask(&b->oracle, prepare, self, &a);
  *out_unfit = a.end == AOTH_ORACLE_UNFIT;
  if (a.end == AOTH_ORACLE_CRASHED) wrong = "crash";
  if (a.end == AOTH_ORACLE_REFUSED) wrong = "refusal";
  snprintf(why, size, "%s", a.why);
  if (!wrong) wrong = aoth_bisect_bound(b, &a, why, size);
  if (!wrong && a.end == AOTH_ORACLE_RAN && aoth_results_differ(a.results, b->good.results, b->tolerance, &d)) {
    wrong = "results";
    aoth_difference_print(&d, "was", why, size);
  }
  aoth_oracle_answer_deinit(&a);
  return wrong;
}

void aoth_bisect_tell_node(json_t *found, aot_prog_t *p, aot_node_t node) {
  kit_text_t text = {0}, from = {0};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_origin_info_t o = {.struct_size = sizeof o};
  if (aoth_graph_node_info(p, node, &info) != AOT_OK) return;
  aoth_print_node(p, node, &text);
  if (aoth_graph_origin_info(p, info.origin, &o) == AOT_OK) {
    if (o.module_path.size) kit_text_f(&from, "module %.*s, ", (int)o.module_path.size, o.module_path.data);
    if (o.node_name.size) kit_text_f(&from, "node %.*s", (int)o.node_name.size, o.node_name.data);
    else kit_text_f(&from, "line %u", o.line);
  }
  json_object_set_new(found, "node",
                      json_stringn(text.data ? text.data : "", strcspn(text.data ? text.data : "", "\n")));
  json_object_set_new(found, "from", json_string(from.data ? from.data : ""));
  kit_text_deinit(&text);
  kit_text_deinit(&from);
}
