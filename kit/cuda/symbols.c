#include "symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int nv_find_symbols(void *handle, const nv_symbol_t *symbols, size_t n, char *why, size_t n_why) {
  for (size_t k = 0; k < n; k++) {
    void *found = dlsym(handle, symbols[k].name);
    if (!found) {
      snprintf(why, n_why, "it has no function %s", symbols[k].name);
      return 0;
    }
    memcpy(symbols[k].to, &found, sizeof found);
  }
  return 1;
}
