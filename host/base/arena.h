/* Memory by lifetime: blocks that are freed all at once. */
#ifndef AOTH_ARENA_H
#define AOTH_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct aoth_arena aoth_arena_t;

aoth_arena_t *aoth_arena_create(void);    /* NULL: no memory */
void aoth_arena_destroy(aoth_arena_t *a); /* NULL is fine */
void aoth_arena_reset(aoth_arena_t *a);   /* frees all, keeps the first block; poisoned under ASan */
void *aoth_arena_alloc(aoth_arena_t *a, size_t align, size_t size); /* zeroed; NULL: no memory */
void *aoth_arena_copy(aoth_arena_t *a, size_t align, const void *src, size_t size);
char *aoth_arena_text(aoth_arena_t *a, const char *src, size_t size); /* terminated copy */
int aoth_arena_failed(const aoth_arena_t *a);      /* an allocation has failed since create or reset */
uint64_t aoth_arena_nbytes(const aoth_arena_t *a); /* handed out since create or reset */

#endif
