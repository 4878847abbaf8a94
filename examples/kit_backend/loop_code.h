/* Generated C functions: collected while graphs are lowered, then compiled together by the C compiler and loaded.
 *
 *     kb_code_find / kb_code_add     while lowering: the place of a function's address, filled later
 *     kb_code_compile                afterwards: all that was added becomes one shared object
 *
 * Objects are cached in the host's cache folder under the hash of their source and the compiler's name, with a seal
 * (kit/base/sealed_file.h). They hold no instructions of one processor only. */
#ifndef KB_LOOP_CODE_H
#define KB_LOOP_CODE_H

#include "kit/lowering/schedule.h"
#include "kit/loops/loop.h"

typedef struct kb_function {
  struct kb_function *next;
  char name[32];
  lw_loop_fn address; /* NULL: not compiled yet */
} kb_function_t;

typedef struct kb_module {
  struct kb_module *next;
  void *handle;
} kb_module_t;

typedef struct kb_code { /* zero-initialise, then set folder and compiler */
  const char *cache;     /* the host's cache folder; NULL: none, and nothing is cached; borrowed */
  const char *compiler;  /* a name in PATH, or a path; borrowed */
  kb_function_t *functions;
  kb_module_t *modules;
  lp_text_t source; /* of functions without an address; empty: none */
  uint32_t n_functions;
} kb_code_t;

void kb_code_deinit(kb_code_t *c);
const lw_loop_fn *kb_code_find(const kb_code_t *c, const char *name); /* NULL: unknown */
aot_status_t kb_code_add(kb_code_t *c, const char *name, const char *text, uint64_t nbytes, const lw_loop_fn **out);
/* AOT_E_UNAVAILABLE: no compiler, or it fails; the text has its first line. */
aot_status_t kb_code_compile(kb_code_t *c, lw_error_t *error);

#endif
