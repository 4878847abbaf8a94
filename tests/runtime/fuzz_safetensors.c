/* Mutated safetensors files: whatever the bytes, the reader answers, and a file that it accepts keeps its promises. The
 * mutations come from our own random numbers, so that every run does the same; argv[1]: how many (20000), argv[2]:
 * their seed (1). */
#include <trainer/tensors/random.h>
#include <trainer/tensors/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE 1024

static const char header[] =
    "{\"__metadata__\":{\"step\":\"3\"},\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"b\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]},\"c\":{\"dtype\":\"BF16\",\"shape\":[0,5],\"data_"
    "offsets\":[32,32]},"
    "\"d\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[32,36]}}";

static size_t seed_file(unsigned char *out) {
  size_t n = sizeof header - 1;
  memset(out, 0, MAX_SIZE);
  out[0] = (unsigned char)n;
  out[1] = (unsigned char)(n >> 8);
  memcpy(out + 8, header, n);
  return 8 + n + 36;
}

/* Pieces that mean something to a parser are likelier to hurt it than random bytes. */
static size_t mutate(aoth_random_t *r, unsigned char *b, size_t n) {
  /* clang-format off */
  static const char *const pieces[] = {"{", "}", "[", "]", "\"", ",", ":", "0", "-1", "99999999999999999999", "1e9",
                                       "null", "F64",
                                       "\\u0000", "__metadata__", "[[[[[[[[", "data_offsets", "4611686018427387904"};
  /* clang-format on */
  size_t at = (size_t)aoth_random_below(r, n);
  switch (aoth_random_below(r, 5)) {
    case 0: b[at] = (unsigned char)aoth_random_u64(r); return n;
    case 1: b[at] ^= (unsigned char)(1u << aoth_random_below(r, 8)); return n;
    case 2: { /* overwrite with a piece */
      const char *p = pieces[aoth_random_below(r, sizeof pieces / sizeof *pieces)];
      size_t k = strlen(p) < n - at ? strlen(p) : n - at;
      memcpy(b + at, p, k);
      return n;
    }
    case 3: /* delete */ memmove(b + at, b + at + 1, n - at - 1); return n > 1 ? n - 1 : n;
    default: /* cut or double a digit */
      if (n + 1 > MAX_SIZE) return n;
      memmove(b + at + 1, b + at, n - at);
      return n + 1;
  }
}

/* Touch all that the reader promises. */
static uint64_t use(const aoth_st_t *st) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < aoth_st_count(st); i++) {
    const aoth_st_entry_t *e = &aoth_st_entries(st)[i];
    for (uint64_t k = 0; k < e->tensor.nbytes; k++) sum += ((const unsigned char *)e->tensor.data)[k];
    if (aoth_st_find(st, e->name) != e) abort();
    if (e->tensor.nbytes != (uint64_t)aoth_tensor_numel(&e->tensor) *
                                (e->tensor.nbytes ? e->tensor.nbytes / (uint64_t)aoth_tensor_numel(&e->tensor) : 1))
      abort();
  }
  return sum;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 20000, accepted = 0;
  aoth_random_t r;
  aoth_random_seed(&r, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
  uint64_t sum = 0;
  for (long i = 0; i < rounds; i++) {
    unsigned char seed[MAX_SIZE];
    size_t n = seed_file(seed), n_mutations = 1 + (size_t)aoth_random_below(&r, 4);
    for (size_t k = 0; k < n_mutations; k++) n = mutate(&r, seed, n);
    unsigned char *bytes = malloc(n); /* exact, so that a sanitizer sees a step too far */
    aoth_sink_t *sink = aoth_sink_create(NULL);
    aoth_st_t *st;
    if (!bytes || !sink) return 1;
    memcpy(bytes, seed, n);
    if (aoth_st_parse("fuzz", bytes, n, sink, &st) == AOT_OK) {
      accepted++;
      sum += use(st);
      aoth_st_close(st);
    } else if (aoth_sink_count(sink, AOT_SEVERITY_ERROR) != 1) {
      fprintf(stderr, "round %ld: refused with %u messages\n", i, aoth_sink_count(sink, AOT_SEVERITY_ERROR));
      return 1;
    }
    aoth_sink_destroy(sink);
    free(bytes);
  }
  printf("%ld files, %ld accepted, sum %llu\n", rounds, accepted, (unsigned long long)sum);
  return accepted > 0 && accepted < rounds ? 0 : 1; /* neither all nor none: the mutations are of use */
}
