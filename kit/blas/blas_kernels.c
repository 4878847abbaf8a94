/* Kernels are compared by the vectors they use: within a width OpenBLAS knows better. */
#include "blas_kernels.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { SSE, AVX, AVX2, AVX512 };

/* What a width takes, and the kernels with it that run on every such processor. */
static const struct {
  int width;
  const char *kernels, *needs[6];
} widths[] = {{AVX512, "SKYLAKEX", {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "fma"}},
              {AVX2, "HASWELL", {"avx2", "fma"}},
              {AVX, "SANDYBRIDGE", {"avx"}}};

static const struct {
  const char *kernels;
  int width;
} known[] = {{"Katmai", SSE},        {"Coppermine", SSE},
             {"Northwood", SSE},     {"Prescott", SSE},
             {"Banias", SSE},        {"Atom", SSE},
             {"Core2", SSE},         {"Penryn", SSE},
             {"Dunnington", SSE},    {"Nehalem", SSE},
             {"Athlon", SSE},        {"Opteron", SSE},
             {"Opteron_SSE3", SSE},  {"Barcelona", SSE},
             {"Bobcat", SSE},        {"Nano", SSE},
             {"Sandybridge", AVX},   {"Bulldozer", AVX},
             {"Piledriver", AVX},    {"Steamroller", AVX},
             {"Excavator", AVX2},    {"Haswell", AVX2},
             {"Zen", AVX2},          {"SkylakeX", AVX512},
             {"Cooperlake", AVX512}, {"SapphireRapids", AVX512}};

static int has_word(const char *text, const char *word) {
  const size_t size = strlen(word);
  for (const char *at = text; (at = strstr(at, word)) != NULL; at += size)
    if ((at == text || at[-1] == ' ' || at[-1] == '\t') && (at[size] == 0 || strchr(" \t\n", at[size]))) return 1;
  return 0;
}

static int has_all(const char *flags, const char *const *needs, size_t n) {
  for (size_t k = 0; k < n && needs[k]; k++)
    if (!has_word(flags, needs[k])) return 0;
  return 1;
}

const char *bl_better_kernels(const char *flags, const char *chosen) {
  size_t c = 0, w = 0;
  while (c < sizeof known / sizeof *known && strcasecmp(known[c].kernels, chosen) != 0) c++;
  if (c == sizeof known / sizeof *known) return NULL; /* of a later release */
  while (w < sizeof widths / sizeof *widths &&
         !has_all(flags, widths[w].needs, sizeof widths->needs / sizeof *widths->needs))
    w++;
  return w < sizeof widths / sizeof *widths && widths[w].width > known[c].width ? widths[w].kernels : NULL;
}
