/* edit_tensors IN OUT (drop KEY | rename KEY NEW | add KEY NUMBER | scale KEY NUMBER | keep PREFIX | ones KEY
 * SIZES)...: a changed copy of a safetensors file, for expectations that must fail and inputs for one call. `add` adds
 * a number to every element, `scale` multiplies each; `ones input.0 3x4` is a new f32[3, 4]. */
#include <trainer/tensors/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rows {
  aoth_st_entry_t *at;
  uint32_t n;
} rows_t;

static void drop(rows_t *r, uint32_t i) { r->at[i] = r->at[--r->n]; }

static uint32_t find(const rows_t *r, const char *key) {
  for (uint32_t i = 0; i < r->n; i++)
    if (strcmp(r->at[i].name, key) == 0) return i;
  fprintf(stderr, "edit_tensors: there is no %s\n", key);
  exit(2);
}

/* Each element becomes factor * it + number. */
static void change(aoth_tensor_t *t, double factor, double number) {
  char *copy = malloc((size_t)t->nbytes + 1);
  aoth_walk_t w;
  if (!copy) exit(2);
  memcpy(copy, t->data, (size_t)t->nbytes);
  t->data = copy;
  for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w))
    kit_element_store(t->dtype, w.at[0], factor * kit_element_load(t->dtype, w.at[0]) + number);
}

static void ones(rows_t *r, const char *key, const char *sizes) {
  int64_t dims[AOT_MAX_RANK];
  int32_t rank = 0;
  for (const char *p = sizes; *p && rank < AOT_MAX_RANK; p += *p == 'x') dims[rank++] = strtoll(p, (char **)&p, 10);
  aoth_tensor_t t = aoth_tensor_make(NULL, AOT_F32, rank, dims);
  t.data = calloc((size_t)t.nbytes + 1, 1);
  r->at = realloc(r->at, (r->n + 1) * sizeof *r->at);
  if (!t.data || !r->at) exit(2);
  aoth_tensor_fill(&t, 1);
  memset(&r->at[r->n], 0, sizeof *r->at);
  r->at[r->n].name = key;
  r->at[r->n++].tensor = t;
}

int main(int argc, char **argv) {
  aoth_sink_t *sink = aoth_sink_create(stderr);
  aoth_st_t *in;
  if (argc < 3 || !sink || aoth_st_open(argv[1], sink, &in) != AOT_OK) return 2;
  rows_t rows = {.at = calloc((size_t)aoth_st_count(in) + 1, sizeof *rows.at), .n = aoth_st_count(in)};
  if (!rows.at) return 2;
  memcpy(rows.at, aoth_st_entries(in), rows.n * sizeof *rows.at);
  for (int i = 3; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "drop") == 0) {
      drop(&rows, find(&rows, argv[i + 1]));
    } else if (strcmp(argv[i], "keep") == 0) {
      for (uint32_t k = rows.n; k-- > 0;)
        if (strncmp(rows.at[k].name, argv[i + 1], strlen(argv[i + 1])) != 0) drop(&rows, k);
    } else if (strcmp(argv[i], "rename") == 0 && i + 2 < argc) {
      rows.at[find(&rows, argv[i + 1])].name = argv[i + 2];
      i++;
    } else if (strcmp(argv[i], "add") == 0 && i + 2 < argc) {
      change(&rows.at[find(&rows, argv[i + 1])].tensor, 1, atof(argv[i + 2]));
      i++;
    } else if (strcmp(argv[i], "scale") == 0 && i + 2 < argc) {
      change(&rows.at[find(&rows, argv[i + 1])].tensor, atof(argv[i + 2]), 0);
      i++;
    } else if (strcmp(argv[i], "ones") == 0 && i + 2 < argc) {
      ones(&rows, argv[i + 1], argv[i + 2]);
      i++;
    } else {
      fprintf(stderr, "edit_tensors: what is %s?\n", argv[i]);
      return 2;
    }
  }
  return aoth_st_write(argv[2], rows.at, rows.n, NULL, 0, sink) == AOT_OK ? 0 : 2;
}
