/* Memory by lifetime: blocks that are freed all at once. */
#ifndef KIT_ARENA_H
#define KIT_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct kit_arena kit_arena_t;

kit_arena_t *kit_arena_create(void);    /* NULL: no memory */
void kit_arena_destroy(kit_arena_t *a); /* NULL is fine */
void kit_arena_reset(kit_arena_t *a);   /* frees all, keeps the first block; poisoned under ASan */
void *kit_arena_alloc(kit_arena_t *a, size_t align, size_t size); /* zeroed; NULL: no memory */
void *kit_arena_copy(kit_arena_t *a, size_t align, const void *src, size_t size);
char *kit_arena_text(kit_arena_t *a, const char *src, size_t size); /* terminated copy */
int kit_arena_failed(const kit_arena_t *a);                         /* an allocation has failed since create or reset */
uint64_t kit_arena_nbytes(const kit_arena_t *a);                    /* handed out since create or reset */

#endif
