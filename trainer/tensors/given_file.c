#include <trainer/tensors/given_file.h>

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

/* The number of a key "input.12"; below 0: it is another key. */
static int64_t input_number(const char *key) {
  static const char prefix[] = "input.";
  int64_t number;
  if (strncmp(key, prefix, sizeof prefix - 1) != 0) return -1;
  const char *end = read_number(key + sizeof prefix - 1, &number);
  return end && !*end && number < UINT32_MAX ? number : -1;
}

static int by_value(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

void aoth_given_numbers(const aoth_st_t *file, uint32_t n, uint32_t *numbers) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  uint32_t n_given = 0;
  for (uint32_t i = 0; i < aoth_st_count(file); i++) {
    const int64_t number = input_number(e[i].name);
    if (number < 0) continue;
    if (n_given < n) numbers[n_given] = (uint32_t)number;
    n_given++;
  }
  if (n_given == n) {
    qsort(numbers, n, sizeof *numbers, by_value);
    return;
  }
  for (uint32_t k = 0; k < n; k++) numbers[k] = k;
}

uint32_t aoth_given_index(const uint32_t *numbers, uint32_t n, uint32_t number) {
  const uint32_t *at = n ? bsearch(&number, numbers, n, sizeof *numbers, by_value) : NULL;
  return at ? (uint32_t)(at - numbers) : number;
}
