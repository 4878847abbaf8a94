/* Which files the code of a call stack is from. Async-signal-safe: reads /proc/self/maps into memory of the stack. */
#ifndef AOTH_CODE_OF_H
#define AOTH_CODE_OF_H

#include <stdint.h>

#define AOTH_CODE_PATH 256

/* Terminated paths; empty: none. */
typedef struct aoth_code_of {
  char innermost[AOTH_CODE_PATH]; /* whose code ran */
  char outermost[AOTH_CODE_PATH]; /* where the thread was started: its start function is there */
} aoth_code_of_t;

/* Addresses, the innermost first. The C library, the loader and the host itself do not count. O(mappings * n) */
void aoth_code_of(const uint64_t *addresses, uint32_t n, aoth_code_of_t *out);

#endif
