#include <config/stage_print.h>

#include <aot/inline.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <config/yaml.h>
#include <string.h>
#include <unistd.h>

void aoth_print_path(kit_text_t *out, const char *path) {
  char cwd[4096];
  if (path[0] == '/' || path[0] == 0 || !getcwd(cwd, sizeof cwd)) {
    aoth_yaml_print_text(out, aot_str(path));
    return;
  }
  kit_text_t absolute = {0};
  kit_text_f(&absolute, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
  aoth_yaml_print_text(out,
                       (aot_str_t){absolute.data ? absolute.data : path, absolute.data ? absolute.size : strlen(path)});
  kit_text_deinit(&absolute);
}

void aoth_print_double(kit_text_t *out, double d) {
  if (d != d) kit_text_z(out, ".nan");
  else if (d - d != 0) kit_text_z(out, d < 0 ? "-.inf" : ".inf");
  else kit_text_double(out, d);
}

static void print_path_text(kit_text_t *out, aot_str_t path) {
  kit_text_t terminated = {0};
  kit_text_str(&terminated, path);
  aoth_print_path(out, terminated.data ? terminated.data : "");
  kit_text_deinit(&terminated);
}

void aoth_print_option_value(kit_text_t *out, const aoth_stage_t *stage, uint32_t i) {
  const aot_option_t *option = aoth_unit_option(stage->unit, i);
  const aot_opt_value_t *v = &stage->opts.values[i];
  switch (option->kind) {
    case AOT_OPT_BOOL: kit_text_z(out, v->i ? "true" : "false"); break;
    case AOT_OPT_I64:
    case AOT_OPT_BYTES: kit_text_i64(out, v->i); break;
    case AOT_OPT_F64: aoth_print_double(out, v->f); break;
    case AOT_OPT_PATH: print_path_text(out, v->s); break;
    default: aoth_yaml_print_text(out, v->s);
  }
}

static void print_tree(kit_text_t *out, const aoth_yaml_t *node) {
  if (node->kind == AOTH_YAML_SCALAR) {
    if (!node->quoted && strcmp(aoth_yaml_kind(node), "a string") != 0)
      kit_text_z(out, node->text.size ? node->text.data : "null");
    else aoth_yaml_print_text(out, node->text);
    return;
  }
  kit_text_z(out, node->kind == AOTH_YAML_LIST ? "[" : "{");
  for (uint32_t i = 0; i < node->n; i++) {
    if (i) kit_text_z(out, ", ");
    if (node->kind == AOTH_YAML_MAP) {
      aoth_yaml_print_text(out, node->pairs[i].key->text);
      kit_text_z(out, ": ");
      print_tree(out, node->pairs[i].value);
    } else {
      print_tree(out, node->items[i]);
    }
  }
  kit_text_z(out, node->kind == AOTH_YAML_LIST ? "]" : "}");
}

void aoth_print_options(kit_text_t *out, const char *prefix, const aoth_stage_t *stage) {
  if (!stage->unit) {
    if (!stage->with) return;
    kit_text_z(out, prefix);
    print_tree(out, stage->with);
    kit_text_z(out, "\n");
    return;
  }
  if (stage->opts.n_values == 0) return;
  kit_text_z(out, prefix);
  for (uint32_t i = 0; i < stage->opts.n_values; i++) {
    kit_text_z(out, i ? ", " : "{");
    aoth_yaml_print_text(out, aoth_unit_option(stage->unit, i)->name);
    kit_text_z(out, ": ");
    aoth_print_option_value(out, stage, i);
  }
  kit_text_z(out, "}\n");
}

void aoth_print_isolation(kit_text_t *out, const char *prefix, const aoth_stage_t *stage) {
  if (stage->isolate != AOTH_ISOLATE_UNSAID)
    kit_text_f(out, "%sisolate: %s\n", prefix, stage->isolate == AOTH_ISOLATE_WORKER ? "worker" : "none");
  if (stage->timeout == 0) return;
  kit_text_f(out, "%stimeout: ", prefix);
  aoth_print_double(out, stage->timeout);
  kit_text_z(out, "\n");
}
