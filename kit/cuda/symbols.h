/* Functions of a library that is opened at run time, as rows of a table. */
#ifndef NV_SYMBOLS_H
#define NV_SYMBOLS_H

#include <stddef.h>

typedef struct nv_symbol {
  const char *name;
  void *to; /* a pointer to a function pointer */
} nv_symbol_t;

/* 0: one is missing, and `why` names it. */
int nv_find_symbols(void *handle, const nv_symbol_t *symbols, size_t n, char *why, size_t n_why);

#endif
