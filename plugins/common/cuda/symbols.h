/* Functions of a library that is opened at run time, as rows of a table. */
#ifndef CU_SYMBOLS_H
#define CU_SYMBOLS_H

#include <stddef.h>

typedef struct cu_symbol {
  const char *name;
  void *to; /* a pointer to a function pointer */
} cu_symbol_t;

/* 0: one is missing, and `why` names it. */
int cu_find_symbols(void *handle, const cu_symbol_t *symbols, size_t n, char *why, size_t n_why);

#endif
