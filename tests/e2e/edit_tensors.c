/* edit_tensors IN OUT (drop KEY | rename KEY NEW | add KEY NUMBER | keep PREFIX)...: a changed copy of a safetensors file, for
 * expectations that must fail and inputs for one call. `add` adds a number to every element. */
#include <runtime/safetensors.h>
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

static void add(aoth_tensor_t *t, double number) {
  char *copy = malloc((size_t)t->nbytes + 1);
  aoth_walk_t w;
  if (!copy) exit(2);
  memcpy(copy, t->data, (size_t)t->nbytes);
  t->data = copy;
  for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w))
    aoth_tensor_store(t->dtype, w.at[0], aoth_tensor_load(t->dtype, w.at[0]) + number);
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
      add(&rows.at[find(&rows, argv[i + 1])].tensor, atof(argv[i + 2]));
      i++;
    } else {
      fprintf(stderr, "edit_tensors: what is %s?\n", argv[i]);
      return 2;
    }
  }
  return aoth_st_write(argv[2], rows.at, rows.n, NULL, 0, sink) == AOT_OK ? 0 : 2;
}
