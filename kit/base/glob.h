/* Patterns of names: * matches any characters, ? one. */
#ifndef KIT_GLOB_H
#define KIT_GLOB_H

#include <aot/base.h>
#include <stdint.h>

/* One place to go back to is enough: a later star can do all that an earlier one could. O(pattern x text) at worst. */
static inline int kit_glob(aot_str_t pattern, aot_str_t text) {
  uint64_t p = 0, t = 0, star = UINT64_MAX, resume = 0;
  while (t < text.size) {
    if (p < pattern.size && pattern.data[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size && (pattern.data[p] == '?' || pattern.data[p] == text.data[t])) {
      p++;
      t++;
    } else if (star != UINT64_MAX) {
      p = star + 1;
      t = ++resume;
    } else {
      return 0;
    }
  }
  while (p < pattern.size && pattern.data[p] == '*') p++;
  return p == pattern.size;
}

#endif
