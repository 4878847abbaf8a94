#include "budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST 9.0e15 /* bytes: whole numbers up to here are exact in a double */

typedef struct budget_unit {
  const char *name;
  double nbytes;
} budget_unit_t;
static const budget_unit_t units[] = {{"B", 1},
                                      {"kB", 1e3},
                                      {"MB", 1e6},
                                      {"GB", 1e9},
                                      {"TB", 1e12},
                                      {"KiB", 1024},
                                      {"MiB", 1024.0 * 1024},
                                      {"GiB", 1024.0 * 1024 * 1024},
                                      {"TiB", 1024.0 * 1024 * 1024 * 1024}};

static double unit_of(const char *text) {
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcasecmp(units[i].name, text) == 0) return units[i].nbytes;
  return 0;
}

/* Digits with at most one point, and perhaps an exponent: no sign, no nan, no hexadecimal. */
static int is_number(const char *text) {
  return *text && strspn(text, "0123456789.") > 0 && (text[0] != '.' || (text[1] >= '0' && text[1] <= '9')) &&
         !(text[0] == '0' && (text[1] == 'x' || text[1] == 'X'));
}

int mc_budget_parse(aot_str_t text, mc_budget_t *out, const char **out_why) {
  char copy[64], *end;
  memset(out, 0, sizeof *out);
  *out_why = "bytes (64MiB, 1.5GB, 4096) or a fraction of the all-saved peak (above 0, at most 1) is expected";
  if (text.size == 0 || text.size >= sizeof copy) return 0;
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  if (!is_number(copy)) return 0;
  double number = strtod(copy, &end);
  while (*end == ' ') end++;
  double unit = *end ? unit_of(end) : 0;
  if (*end && unit == 0) {
    *out_why = "this unit is not known: B, kB, MB, GB, TB, KiB, MiB, GiB or TiB is expected";
    return 0;
  }
  if (!(number > 0) || !isfinite(number)) {
    *out_why = "a budget is above 0";
    return 0;
  }
  if (unit == 0 && number <= 1) {
    out->fraction = number;
    return 1;
  }
  double nbytes = number * (unit == 0 ? 1 : unit);
  if (unit == 0 && nbytes != floor(nbytes)) {
    *out_why = "a fraction is at most 1; whole bytes or a number with a unit (64MiB) are expected otherwise";
    return 0;
  }
  if (nbytes > MOST || nbytes < 1) {
    *out_why = nbytes < 1 ? "a budget is at least one byte" : "a budget is below 9e15 bytes";
    return 0;
  }
  out->nbytes = (uint64_t)nbytes;
  return 1;
}

uint64_t mc_budget_nbytes(const mc_budget_t *b, uint64_t whole) {
  return b->nbytes ? b->nbytes : (uint64_t)(b->fraction * (double)whole);
}

const char *mc_budget_print(uint64_t nbytes, char out[MC_BUDGET_TEXT]) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double n = (double)nbytes;
  int unit = 0;
  for (; n >= 1024 && unit < 4; unit++) n /= 1024;
  if (unit) snprintf(out, MC_BUDGET_TEXT, "%llu bytes (%.2f %s)", (unsigned long long)nbytes, n, names[unit]);
  else snprintf(out, MC_BUDGET_TEXT, "%llu bytes", (unsigned long long)nbytes);
  return out;
}
