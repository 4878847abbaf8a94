/* ${name} and ${name:-default} in values; $$ is a dollar.
 *
 * A scalar that is one variable has the variable's type, so distance-base: "${base}" is a number when the
 * variable is one; any other text is typed after it is filled in, or stays text where it is quoted. Variables may use
 * variables. Each is filled in once and then reused, and no text grows beyond MAX_TEXT, so nested variables cannot
 * blow up. --set vars.NAME wins over every file. */
#include <config/compose.h>

#include <stdio.h>
#include <string.h>

#define MAX_TEXT 65536u
#define FILLING 2u /* of expanded: a variable whose value is being filled in */

static size_t name_size(const char *s) {
  return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

static aoth_yaml_t *find(const aoth_yaml_t *map, const char *name, size_t size) {
  for (uint32_t i = 0; map && map->kind == AOTH_YAML_MAP && i < map->n; i++)
    if (map->pairs[i].key->text.size == size && memcmp(map->pairs[i].key->text.data, name, size) == 0)
      return map->pairs[i].value;
  return NULL;
}

static void report_unknown(aoth_compose_t *c, const aoth_yaml_t *node, const aoth_yaml_t *vars, const char *name,
                           size_t size) {
  aot_str_t names[64];
  uint32_t n = 0;
  for (uint32_t i = 0; vars && vars->kind == AOTH_YAML_MAP && i < vars->n && n < 64; i++)
    names[n++] = vars->pairs[i].key->text;
  const int near = kit_nearest((aot_str_t){name, size}, names, n);
  if (near >= 0)
    aoth_yaml_error(c->sink, c->arena, node, "pipeline.variable", "unknown variable '%.*s'; did you mean '%.*s'?",
                    (int)size, name, (int)names[near].size, names[near].data);
  else
    aoth_yaml_error(
        c->sink, c->arena, node, "pipeline.variable",
        "unknown variable '%.*s'; give it a default in vars:, write ${%.*s:-default}, or pass --set vars.%.*s=VALUE",
        (int)size, name, (int)size, name, (int)size, name);
}

static void fill_scalar(aoth_compose_t *c, aoth_yaml_t *node, aoth_yaml_t *vars);

/* The value of a variable, filled in itself. NULL: reported. */
static aoth_yaml_t *value_of(aoth_compose_t *c, const aoth_yaml_t *node, aoth_yaml_t *vars, const char *name,
                             size_t size) {
  aoth_yaml_t *value = find(c->set_vars, name, size);
  if (value) value->used = 1;
  if (!value) value = find(vars, name, size);
  if (!value) return NULL;
  if (value->kind != AOTH_YAML_SCALAR) {
    aoth_yaml_error(c->sink, c->arena, value, "pipeline.variable",
                    "'vars': expected a string, a number or a boolean, got %s", aoth_yaml_kind(value));
    value->kind = AOTH_YAML_SCALAR; /* said once */
    value->expanded = 1;
  }
  if (value->expanded == FILLING) {
    aoth_yaml_error(c->sink, c->arena, node, "pipeline.variable-cycle", "variable '%.*s' uses itself", (int)size, name);
    return value;
  }
  fill_scalar(c, value, vars);
  return value;
}

/* One ${...} at s; its text goes to out. Answers the bytes read, 0 when reported. */
static size_t fill_one(aoth_compose_t *c, aoth_yaml_t *node, aoth_yaml_t *vars, const char *s, kit_text_t *out,
                       const aoth_yaml_t **variable) {
  if (s[1] == '$') {
    kit_text_z(out, "$");
    return 2;
  }
  const size_t size = s[1] == '{' ? name_size(s + 2) : 0;
  const char *rest = s + 2 + size, *end = size ? strchr(rest, '}') : NULL;
  const int has_default = end && rest[0] == ':' && rest[1] == '-';
  if (!end || (rest != end && !has_default)) {
    aoth_yaml_error(c->sink, c->arena, node, "pipeline.variable",
                    "invalid variable reference; expected ${name}, ${name:-default}, or $$ for a literal '$'");
    return 0;
  }
  const aoth_yaml_t *value = value_of(c, node, vars, s + 2, size);
  if (value) {
    kit_text_str(out, value->text);
    *variable = value;
  } else if (has_default) {
    kit_text_add(out, rest + 2, (size_t)(end - rest - 2));
  } else {
    report_unknown(c, node, vars, s + 2, size);
    return 0;
  }
  return (size_t)(end + 1 - s);
}

static void fill_scalar(aoth_compose_t *c, aoth_yaml_t *node, aoth_yaml_t *vars) {
  if (node->expanded) return;
  node->expanded = FILLING;
  const char *s = node->text.data;
  const aoth_yaml_t *variable = NULL;
  kit_text_t out = {0};
  int ok = strchr(s, '$') != NULL;
  const int whole = ok && s[0] == '$' && strchr(s, '}') == s + node->text.size - 1;
  while (ok && *s) {
    const char *dollar = strchr(s, '$');
    kit_text_add(&out, s, dollar ? (size_t)(dollar - s) : strlen(s));
    if (!dollar) break;
    const size_t n = fill_one(c, node, vars, dollar, &out, &variable);
    ok = n != 0;
    s = dollar + n;
    if (ok && out.size > MAX_TEXT) {
      aoth_yaml_error(c->sink, c->arena, node, "pipeline.variable", "more than %u bytes after variable substitution",
                      MAX_TEXT);
      ok = 0;
    }
  }
  if (out.failed) {
    aoth_yaml_error(c->sink, c->arena, node, "pipeline.memory", "out of memory while substituting variables");
    ok = 0;
  }
  if (ok) {
    const char *text = kit_arena_text(c->arena, out.data ? out.data : "", out.size);
    if (text) node->text = (aot_str_t){text, out.size};
    /* the variable's value itself, type and folder included; quotes are what {..} and [..] want around ${..} */
    if (whole) {
      node->variable = variable;
      node->quoted = variable ? variable->quoted : 0;
    }
  }
  node->failed = !ok && strchr(node->text.data, '$') != NULL;
  kit_text_deinit(&out);
  node->expanded = 1;
}

/* Recursion is bounded by the depth of a pipeline file. */
void aoth_vars_fill(aoth_compose_t *c, aoth_yaml_t *node, aoth_yaml_t *vars) {
  if (node->kind == AOTH_YAML_SCALAR) fill_scalar(c, node, vars);
  for (uint32_t i = 0; i < node->n; i++)
    aoth_vars_fill(c, node->kind == AOTH_YAML_LIST ? node->items[i] : node->pairs[i].value, vars);
}

void aoth_vars_unused(aoth_compose_t *c, const aoth_yaml_t *tree) {
  const aoth_yaml_t *vars = aoth_yaml_get(tree, "vars");
  for (uint32_t i = 0; c->set_vars && i < c->set_vars->n; i++) {
    const aoth_yaml_pair_t *p = &c->set_vars->pairs[i];
    if (!p->value->used && !find(vars, p->key->text.data, (size_t)p->key->text.size))
      report_unknown(c, p->value, vars, p->key->text.data, (size_t)p->key->text.size);
  }
}
