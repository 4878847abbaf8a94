#include <step/given_file.h>

#include <stdlib.h>
#include <string.h>

static const char *skip_spaces(const char *c) {
  while (*c == ' ') c++;
  return c;
}

/* A number of at least 0. NULL: none here. */
static const char *read_number(const char *c, int64_t *out) {
  char *end;
  c = skip_spaces(c);
  if (*c < '0' || *c > '9') return NULL;
  *out = strtoll(c, &end, 10);
  return end;
}

/* [4, 2] */
static const char *read_dims(const char *c, int64_t *dims, int32_t *rank) {
  c = skip_spaces(c);
  *rank = 0;
  if (*c++ != '[') return NULL;
  c = skip_spaces(c);
  if (*c == ']') return c + 1;
  for (;;) {
    if (*rank == AOT_MAX_RANK || !(c = read_number(c, &dims[(*rank)++]))) return NULL;
    c = skip_spaces(c);
    if (*c == ']') return c + 1;
    if (*c++ != ',') return NULL;
  }
}

static const char *read_word(const char *c, const char *word) {
  c = skip_spaces(c);
  return strncmp(c, word, strlen(word)) == 0 ? c + strlen(word) : NULL;
}

/* dims [ "strides" dims ] [ "offset" N ]; 0: something else. */
static int read_geometry(const char *c, aoth_tensor_t *t) {
  int32_t n_strides;
  const char *next;
  if (!(c = read_dims(c, t->sizes, &t->rank))) return 0;
  aoth_tensor_contiguous(t);
  if ((next = read_word(c, "strides"))) {
    c = read_dims(next, t->strides, &n_strides);
    if (!c || n_strides != t->rank) return 0;
  }
  if ((next = read_word(c, "offset")) && !(c = read_number(next, &t->offset))) return 0;
  return *skip_spaces(c) == '\0';
}

static aot_status_t refuse(const aoth_st_t *file, uint32_t k, const char *text, const char *why, aoth_sink_t *sink) {
  aoth_where_t where = {.file = aoth_st_path(file)};
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "input.alias", "\"alias.input.%u\" is \"%s\": %s", k, text, why);
  return AOT_E_INVALID;
}

static aot_status_t read_alias(const aoth_st_t *file, uint32_t k, const char *text, aoth_sink_t *sink,
                               aoth_tensor_t *out) {
  size_t size = strcspn(text, " ");
  char name[128];
  uint64_t reach;
  if (size >= sizeof name) return refuse(file, k, text, "that name is too long", sink);
  memcpy(name, text, size);
  name[size] = '\0';
  const aoth_st_entry_t *e = aoth_st_find(file, name);
  if (!e) return refuse(file, k, text, "the file has no such tensor", sink);
  *out = e->tensor;
  if (!read_geometry(text + size, out))
    return refuse(file, k, text, "expected NAME [sizes] strides [strides] offset N, the last two at will", sink);
  if (!aoth_tensor_extent(out, &reach) || reach > out->nbytes)
    return refuse(file, k, text, "it reaches outside of the tensor", sink);
  return AOT_OK;
}

aot_status_t aoth_given_input(const aoth_st_t *file, uint32_t k, aoth_sink_t *sink, aoth_tensor_t *out) {
  char key[40];
  snprintf(key, sizeof key, "alias.input.%u", k);
  const char *alias = aoth_st_meta(file, key);
  if (alias) return read_alias(file, k, alias, sink, out);
  const aoth_st_entry_t *e = aoth_st_find(file, key + strlen("alias."));
  if (!e) return AOT_E_NOT_FOUND;
  *out = e->tensor;
  return AOT_OK;
}
