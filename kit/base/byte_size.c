#include "byte_size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int kit_byte_size(const char *text, int64_t *out) {
  static const struct {
    const char *suffix;
    double factor;
  } units[] = {{"", 1},
               {"B", 1},
               {"kB", 1e3},
               {"MB", 1e6},
               {"GB", 1e9},
               {"TB", 1e12},
               {"K", 1024.0},
               {"M", 1048576.0},
               {"G", 1073741824.0},
               {"T", 1099511627776.0},
               {"KiB", 1024.0},
               {"MiB", 1048576.0},
               {"GiB", 1073741824.0},
               {"TiB", 1099511627776.0}};
  char number[32];
  const size_t n = strspn(text, "0123456789.");
  if (n == 0 || n >= sizeof number || strchr(text, '.') != strrchr(text, '.')) return 0;
  memcpy(number, text, n);
  number[n] = 0;
  if (number[0] == '.' || number[n - 1] == '.') return 0;
  text += n;
  text += *text == ' ';
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(text, units[i].suffix) != 0) continue;
    const double bytes = strtod(number, NULL) * units[i].factor;
    if (!(bytes < 9e18) || bytes != floor(bytes)) return 0;
    *out = (int64_t)bytes;
    return 1;
  }
  return 0;
}
