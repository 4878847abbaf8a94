/* --set PATH=VALUE, --model, --inputs, --outputs, --seed: laid over the merged tree.
 *
 *     vars.NAME=V                     a variable
 *     stages.NAME.OPTION=V            an option of a stage, by its unit id, its `as:` name or its number
 *     model.path=V  run.train.steps=V a key, maps are made on the way
 *
 * VALUE is YAML: 5, true, [0, 1]. Values are trees like any other, whose file is called "--set PATH", so every later
 * complaint names the flag. Paths among them are relative to the current folder. */
#include <config/compose.h>
#include <config/options.h>

#include <stdlib.h>
#include <string.h>

static void complain(aoth_compose_t *c, const char *set, const char *message, const char *near) {
  aoth_yaml_t *node = aoth_yaml_literal(c->arena, "--set", set);
  if (!node) return;
  if (near) aoth_yaml_error(c->sink, c->arena, node, "pipeline.set", "%s; did you mean '%s'?", message, near);
  else aoth_yaml_error(c->sink, c->arena, node, "pipeline.set", "%s", message);
}

/* The value of PATH=VALUE as a tree. */
static aoth_yaml_t *value_of(const aoth_compose_t *c, const char *option, const char *set, const char *equals) {
  kit_text_t name = {0};
  kit_text_f(&name, "%s ", option);
  kit_text_add(&name, set, (size_t)(equals - set));
  aoth_yaml_t *value = NULL;
  const char *text = equals + 1, *flag = name.data ? name.data : option;
  if (*text == 0) value = aoth_yaml_literal(c->arena, flag, text);
  else aoth_yaml_parse(c->arena, flag, ".", text, strlen(text), NULL, 0, c->sink, &value);
  kit_text_deinit(&name);
  return value;
}

static aoth_yaml_t *key_node(const aoth_compose_t *c, const aoth_yaml_t *like, const char *text, size_t size) {
  aoth_yaml_t *key = aoth_yaml_scalar(c->arena, like, text, size);
  if (key) key->line = key->column = key->end_column = 1;
  return key;
}

/* Put value at a dotted path below map, making maps on the way. */
static void put_path(aoth_compose_t *c, aoth_yaml_t *map, const char *path, const char *end, aoth_yaml_t *value,
                     const char *set) {
  for (;;) {
    const char *dot = memchr(path, '.', (size_t)(end - path));
    const size_t size = (size_t)((dot ? dot : end) - path);
    aoth_yaml_t *key = key_node(c, value, path, size);
    if (!key) return;
    if (size == 0) {
      complain(c, set, "malformed --set; expected PATH=VALUE, e.g. run.train.steps=5", NULL);
      return;
    }
    if (!dot) {
      aoth_yaml_put(c->arena, map, key, value);
      return;
    }
    aoth_yaml_t *below = aoth_yaml_get(map, key->text.data);
    if (!below || aoth_yaml_is_null(below)) {
      below = aoth_yaml_map(c->arena, value);
      if (!below || !aoth_yaml_put(c->arena, map, key, below)) return;
    } else if (below->kind != AOTH_YAML_MAP) {
      kit_text_t t = {0};
      kit_text_f(&t, "'%s' is %s, which has no keys", key->text.data, aoth_yaml_kind(below));
      complain(c, set, t.data ? t.data : "not a map", NULL);
      kit_text_deinit(&t);
      return;
    }
    map = below;
    path = dot + 1;
  }
}

static const char *text_of(const aoth_yaml_t *map, const char *key) {
  const aoth_yaml_t *node = aoth_yaml_get(map, key);
  return node && node->kind == AOTH_YAML_SCALAR ? node->text.data : NULL;
}

/* Does path begin with "name."? */
static int begins(const char *path, const char *end, const char *name) {
  const size_t n = name ? strlen(name) : 0;
  return n && (size_t)(end - path) > n + 1 && memcmp(path, name, n) == 0 && path[n] == '.';
}

/* The stage that `path` (NAME.OPTION) means; the longest name wins, since ids of third parties hold dots. */
/* As it is there, or in the map that pins its plugin. */
static const char *unit_of(const aoth_yaml_t *stage) {
  const aoth_yaml_t *use = aoth_yaml_get(stage, "use");
  return use && use->kind == AOTH_YAML_MAP ? text_of(use, "unit") : text_of(stage, "use");
}

static aoth_yaml_t *find_stage(aoth_compose_t *c, const aoth_yaml_t *stages, const char *path, const char *end,
                               const char *set, size_t *out_size) {
  aoth_yaml_t *found = NULL;
  uint32_t n_found = 0;
  *out_size = 0;
  char *number_end = NULL;
  const unsigned long number = strtoul(path, &number_end, 10);
  if (number_end > path && number_end < end && *number_end == '.' && number >= 1 && number <= stages->n) {
    *out_size = (size_t)(number_end - path);
    return stages->items[number - 1];
  }
  for (uint32_t i = 0; i < stages->n; i++) {
    const char *as = text_of(stages->items[i], "as"), *use = unit_of(stages->items[i]);
    const char *name = begins(path, end, as) ? as : begins(path, end, use) ? use : NULL;
    if (!name || strlen(name) < *out_size) continue;
    n_found = strlen(name) > *out_size ? 1 : n_found + 1;
    *out_size = strlen(name);
    found = stages->items[i];
  }
  if (n_found == 1) return found;
  kit_text_t t = {0};
  const char *near = NULL;
  if (n_found > 1) {
    kit_text_f(&t,
               "ambiguous stage '%.*s' (used %u times); name the stages with 'as:' or use an index, stages.1.OPTION",
               (int)*out_size, path, n_found);
  } else {
    const char *dot = memchr(path, '.', (size_t)(end - path));
    const size_t size = (size_t)((dot ? dot : end) - path);
    aot_str_t names[128];
    uint32_t n = 0;
    for (uint32_t i = 0; i < stages->n && n < 127; i++) {
      const char *as = text_of(stages->items[i], "as"), *use = unit_of(stages->items[i]);
      if (as) names[n++] = (aot_str_t){as, strlen(as)};
      if (use) names[n++] = (aot_str_t){use, strlen(use)};
    }
    const int k = kit_nearest((aot_str_t){path, size}, names, n);
    near = k >= 0 ? names[k].data : NULL;
    if (dot) kit_text_f(&t, "the pipeline has no stage '%.*s'", (int)size, path);
    else kit_text_f(&t, "stages.%.*s: missing option name; expected stages.STAGE.OPTION=VALUE", (int)size, path);
  }
  complain(c, set, t.data ? t.data : "no such stage", near);
  kit_text_deinit(&t);
  return NULL;
}

static void set_stage(aoth_compose_t *c, aoth_yaml_t *tree, const char *path, const char *end, aoth_yaml_t *value,
                      const char *set) {
  aoth_yaml_t *stages = aoth_yaml_get(tree, "stages");
  if (!stages || stages->kind != AOTH_YAML_LIST) {
    complain(c, set, "the pipeline has no list of stages", NULL);
    return;
  }
  size_t size;
  aoth_yaml_t *stage = find_stage(c, stages, path, end, set, &size);
  if (!stage || stage->kind != AOTH_YAML_MAP) return;
  aoth_yaml_t *with = aoth_yaml_get(stage, "with");
  if (!with || with->kind != AOTH_YAML_MAP) {
    with = aoth_yaml_map(c->arena, value);
    aoth_yaml_t *key = key_node(c, value, "with", 4);
    if (!with || !key || !aoth_yaml_put(c->arena, stage, key, with)) return;
  }
  const char *option = path + size + 1;
  aoth_yaml_t *key = key_node(c, value, option, (size_t)(end - option));
  if (key) aoth_yaml_put(c->arena, with, key, value);
}

static int is_vars(const char *set) { return strncmp(set, "vars.", 5) == 0; }

void aoth_set_vars(aoth_compose_t *c) {
  for (uint32_t i = 0; i < c->overrides->n_sets; i++) {
    const char *set = c->overrides->sets[i], *equals = strchr(set, '=');
    if (!equals || !is_vars(set)) continue;
    aoth_yaml_t *value = value_of(c, "--set", set, equals);
    if (!value) continue;
    if (!c->set_vars) c->set_vars = aoth_yaml_map(c->arena, value);
    aoth_yaml_t *key = key_node(c, value, set + 5, (size_t)(equals - set - 5));
    if (c->set_vars && key) aoth_yaml_put(c->arena, c->set_vars, key, value);
  }
}

static void set_one(aoth_compose_t *c, aoth_yaml_t *tree, const char *set) {
  static const aot_str_t roots[] = {{"vars", 4}, {"model", 5},  {"stages", 6},
                                    {"run", 3},  {"opsets", 6}, {"default-units", 13}};
  const int n_roots = (int)(sizeof roots / sizeof *roots);
  const char *equals = strchr(set, '=');
  if (!equals) {
    complain(c, set, "malformed --set; expected PATH=VALUE, e.g. run.train.steps=5", NULL);
    return;
  }
  if (is_vars(set)) return; /* done before the files were read */
  const size_t size = strcspn(set, ".=");
  int root = -1;
  for (int i = 0; i < n_roots; i++)
    if (roots[i].size == size && memcmp(roots[i].data, set, size) == 0) root = i;
  if (root < 0) {
    const int near = kit_nearest((aot_str_t){set, size}, roots, (uint32_t)n_roots);
    complain(c, set, "unknown --set path; expected it to start with vars, model, stages, run, opsets or default-units",
             near >= 0 ? roots[near].data : NULL);
    return;
  }
  aoth_yaml_t *value = value_of(c, "--set", set, equals);
  if (!value) return;
  if (root == 2 && set[size] == '.') set_stage(c, tree, set + size + 1, equals, value, set);
  else put_path(c, tree, set, equals, value, set);
}

static void set_flag(aoth_compose_t *c, aoth_yaml_t *tree, const char *flag, const char *path, const char *text) {
  aoth_yaml_t *value = text ? aoth_yaml_literal(c->arena, flag, text) : NULL;
  if (value) put_path(c, tree, path, path + strlen(path), value, path);
}

/* One seed for everything: also where the train section has one of its own. */
static void set_seed(aoth_compose_t *c, aoth_yaml_t *tree, const char *text) {
  const aoth_yaml_t *run = aoth_yaml_get(tree, "run");
  const aoth_yaml_t *train = run && run->kind == AOTH_YAML_MAP ? aoth_yaml_get(run, "train") : NULL;
  aoth_yaml_t *value = NULL;
  if (text) aoth_yaml_parse(c->arena, "--seed", ".", text, strlen(text), NULL, 0, c->sink, &value);
  if (!value) return;
  static const char all[] = "run.seed", training[] = "run.train.seed";
  put_path(c, tree, all, &all[sizeof all - 1], value, "--seed");
  if (train && train->kind == AOTH_YAML_MAP)
    put_path(c, tree, training, &training[sizeof training - 1], value, "--seed");
}

void aoth_set_apply(aoth_compose_t *c, aoth_yaml_t *tree) {
  for (uint32_t i = 0; i < c->overrides->n_sets; i++) set_one(c, tree, c->overrides->sets[i]);
  set_flag(c, tree, "--model", "model.path", c->overrides->model);
  set_flag(c, tree, "--inputs", "run.inputs", c->overrides->inputs);
  set_flag(c, tree, "--outputs", "run.outputs", c->overrides->outputs);
  set_seed(c, tree, c->overrides->seed);
}

aot_status_t aoth_stage_from_flags(const char *use, const char *const *withs, uint32_t n_withs, kit_arena_t *arena,
                                   aoth_sink_t *sink, aoth_stage_t *out) {
  const aoth_compose_t c = {.arena = arena, .sink = sink};
  const uint32_t before = aoth_sink_count(sink, AOT_SEVERITY_ERROR);
  memset(out, 0, sizeof *out);
  aoth_yaml_t *node = aoth_yaml_literal(arena, "--use", use), *with = node ? aoth_yaml_map(arena, node) : NULL;
  if (!with) return AOT_E_INVALID;
  out->use = out->name = node->text.data;
  out->where = aoth_yaml_where(arena, node);
  for (uint32_t i = 0; i < n_withs; i++) {
    const char *equals = strchr(withs[i], '=');
    aoth_yaml_t *value = equals ? value_of(&c, "--with", withs[i], equals) : NULL;
    if (!equals)
      aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "pipeline.with",
                       "malformed --with; expected OPTION=VALUE, got '%s'", withs[i]);
    if (!value) continue;
    aoth_yaml_t *key = key_node(&c, value, withs[i], (size_t)(equals - withs[i]));
    if (!key || !aoth_yaml_put(arena, with, key, value)) return AOT_E_EXHAUSTED;
  }
  out->with = with->n ? with : NULL;
  return aoth_sink_count(sink, AOT_SEVERITY_ERROR) > before ? AOT_E_INVALID : AOT_OK;
}
