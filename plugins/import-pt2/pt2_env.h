/* pt2_env.h - what every file of the importer shares: memory, and the one error that an import can end with.
 *
 * The files that read the archive are plain C: they get an environment with an allocator and leave the reason of a
 * failure in it; plugin.c turns that into a diagnostic. Memory is never freed here: it belongs to an arena of the
 * caller. */
#ifndef P2_ENV_H
#define P2_ENV_H

#include <aot/base.h>
#include <aot/status.h>
#include <stddef.h>

#define P2_KEEP 1u    /* lives as long as the program (AOT_ARENA_GRAPH) */
#define P2_SCRATCH 2u /* lives as long as the import (AOT_ARENA_SCRATCH) */

/* The first failure. `told`: the host has reported it already. */
typedef struct p2_error {
  const char *code; /* NULL: nothing failed here */
  char message[1400];
  char hint[400];
  uint64_t byte; /* offset in the file, 0: unknown */
  int told;
} p2_error_t;

typedef struct p2_env {
  void *self;
  void *(*alloc)(void *self, uint32_t arena, uint32_t align, uint64_t size); /* zeroed; NULL: reported by the owner */
  p2_error_t error;
} p2_env_t;

/* Record the failure unless an earlier one is. Answers AOT_E_INVALID, for `return p2_fail(..)`. */
aot_status_t p2_fail(p2_env_t *e, const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* to the message of the failure */
void p2_add(p2_env_t *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void p2_hint(p2_env_t *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void p2_byte(p2_env_t *e, uint64_t byte); /* where in the file; the first that is given stays */

/* n zeroed elements; AOT_E_EXHAUSTED when there is no memory (the owner has said so) or the size overflows. */
aot_status_t p2_alloc(p2_env_t *e, uint32_t arena, uint32_t align, uint64_t n, uint64_t size, void **out);
/* Make room for element *n of an array in scratch: doubles by copying, so n appends cost O(n). */
aot_status_t p2_grow(p2_env_t *e, void **array, uint32_t n, uint32_t *capacity, uint64_t size);

#define P2_NEW(env, arena, n, out) /* *out = array of n */                                                             \
  p2_alloc((env), (arena), (uint32_t) _Alignof(max_align_t), (uint64_t)(n), sizeof **(out), (void **)(out))

int p2_str_is(aot_str_t s, const char *z);
int p2_str_starts(aot_str_t s, const char *z);
int p2_str_ends(aot_str_t s, const char *z);
aot_str_t p2_str(const char *z);
/* a b c, terminated, in scratch */
aot_status_t p2_join(p2_env_t *e, aot_str_t a, aot_str_t b, const char *c, aot_str_t *out);

/* For "%.*s": length capped so that messages stay readable. */
#define P2_SHOW(s) (int)((s).size > 200 ? 200 : (s).size), ((s).data ? (s).data : "")

#endif
