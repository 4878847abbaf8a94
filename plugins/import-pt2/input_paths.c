/* input_paths.c - where the inputs of the graph are in the arguments of the model: guards name them so.
 *
 * The in_spec of the model's call is JSON in a string: [1, (tuple (positional..) (dict keyword..))] with children_spec
 * lists; its leaves are the user inputs in order. forward_arg_names names the positional ones; those of `*args` are
 * args_0, args_1, which guards spell L['args'][0]. Children of other containers than tuples, lists and dicts have no
 * path. */
#include "exported_fields.h"
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 32
#define MAX_PATH 1000

typedef struct paths {
  p2_env_t *e;
  p2_program_t *program;
  json_t *names; /* of the positional arguments */
  uint32_t n;    /* leaves so far */
  char path[MAX_PATH];
} paths_t;

/* Of two inputs with one path the first counts. */
static aot_status_t add_path(paths_t *p, const char *path, size_t size) {
  char *copy;
  AOT_TRY(P2_NEW(p->e, P2_SCRATCH, size + 1, &copy));
  memcpy(copy, path, size);
  const aot_status_t status = p2_names_add(p->e, &p->program->path_index, (aot_str_t){copy, size}, p->n, NULL);
  return status == AOT_E_EXISTS ? AOT_OK : status;
}

/* ['args_0'][1] also as ['args'][0][1] */
static aot_status_t add_variadic(paths_t *p, size_t size) {
  const char *end = strstr(p->path, "']"), *digits = end;
  char other[MAX_PATH + 8];
  while (digits && digits > p->path && digits[-1] >= '0' && digits[-1] <= '9') digits--;
  if (!end || digits == end || digits - p->path < 4 || digits[-1] != '_') return AOT_OK;
  const int base = (int)(digits - 1 - p->path);
  const int n = snprintf(other, sizeof other, "%.*s'][%.*s]%.*s", base, p->path, (int)(end - digits), digits,
                         (int)(size - (size_t)(end + 2 - p->path)), end + 2);
  return add_path(p, other, (size_t)n);
}

static aot_status_t leaf(paths_t *p, size_t size) {
  if (size > 0 && size < MAX_PATH) {
    AOT_TRY(add_path(p, p->path, size));
    AOT_TRY(add_variadic(p, size));
  }
  p->n++;
  return AOT_OK;
}

/* The step to child i after the path of `size` bytes; MAX_PATH: it has none. */
static size_t step(paths_t *p, size_t size, const char *type, json_t *keys, uint32_t i) {
  json_t *key = json_array_get(keys, i);
  int n = -1;
  if (size >= MAX_PATH || !type) return MAX_PATH;
  if (strcmp(type, "builtins.tuple") == 0 || strcmp(type, "builtins.list") == 0)
    n = snprintf(p->path + size, MAX_PATH - size, "[%u]", i);
  else if (strcmp(type, "builtins.dict") == 0 && json_is_string(key) && !strchr(json_string_value(key), '\\'))
    n = snprintf(p->path + size, MAX_PATH - size, "['%s']", json_string_value(key));
  else if (strcmp(type, "builtins.dict") == 0 && json_is_integer(key))
    n = snprintf(p->path + size, MAX_PATH - size, "[%lld]", (long long)json_integer_value(key));
  return n < 0 || (size_t)n >= MAX_PATH - size ? MAX_PATH : size + (size_t)n;
}

/* Nested no deeper than MAX_DEPTH: beyond that nothing has a path, as the leaves are not counted. */
static aot_status_t walk(paths_t *p, json_t *spec, size_t size, uint32_t depth) {
  const char *type = json_string_value(json_object_get(spec, "type"));
  const char *context = json_string_value(json_object_get(spec, "context"));
  json_t *children = json_object_get(spec, "children_spec"), *keys = NULL;
  aot_status_t status = AOT_OK;
  if (!type) return leaf(p, size);
  if (depth == MAX_DEPTH || !json_is_array(children)) return AOT_E_NOT_FOUND;
  if (context) keys = json_loads(context, 0, NULL);
  for (uint32_t i = 0; i < json_array_size(children) && status == AOT_OK; i++)
    status = walk(p, json_array_get(children, i), step(p, size, type, keys, i), depth + 1);
  json_decref(keys);
  return status;
}

/* The positional arguments go by their names. */
static aot_status_t walk_positional(paths_t *p, json_t *spec) {
  json_t *children = json_object_get(spec, "children_spec");
  for (uint32_t i = 0; i < json_array_size(children); i++) {
    const char *name = json_string_value(json_array_get(p->names, i));
    const int n = name ? snprintf(p->path, MAX_PATH, "['%s']", name) : MAX_PATH;
    AOT_TRY(walk(p, json_array_get(children, i), n < MAX_PATH ? (size_t)n : MAX_PATH, 1));
  }
  return AOT_OK;
}

aot_status_t p2_decode_paths(p2_env_t *e, json_t *module, p2_program_t *out) {
  json_t *call = json_object_get(json_array_get(json_object_get(module, "module_call_graph"), 0), "signature");
  const char *text = json_string_value(json_object_get(call, "in_spec"));
  json_t *spec = text ? json_loads(text, 0, NULL) : NULL;
  json_t *both = json_object_get(json_array_get(spec, 1), "children_spec");
  paths_t *p;
  aot_status_t status = P2_NEW(e, P2_SCRATCH, 1, &p);
  if (status == AOT_OK) {
    *p = (paths_t){.e = e, .program = out, .names = json_object_get(call, "forward_arg_names")};
    status = walk_positional(p, json_array_get(both, 0));
    if (status == AOT_OK) status = walk(p, json_array_get(both, 1), 0, 0);
    out->n_paths = status == AOT_OK ? p->n : 0;
  }
  json_decref(spec);
  return status == AOT_E_NOT_FOUND ? AOT_OK : status;
}
