/* Memory by lifetime: a chain of growing blocks; an allocation bumps a pointer, a reset drops all of it.
 *
 * Blocks double from 64 KiB to 4 MiB; what does not fit a block gets a block of its own. Under AddressSanitizer all
 * memory that is not handed out is poisoned, so that a pointer stored across a reset is found at its first use. A lock
 * makes allocation safe from any thread, as the plugin interface promises. */
#include "arena.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AOTH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define AOTH_ASAN 1
#endif
#ifdef AOTH_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#ifdef AOTH_TINY_BLOCKS
/* Every allocation is one of the system's, so that each can be made to fail (tests/exhaustion) */
#define FIRST_BLOCK ((size_t)1)
#define LAST_BLOCK ((size_t)1)
#else
#define FIRST_BLOCK ((size_t)64 << 10)
#define LAST_BLOCK ((size_t)4 << 20)
#endif
#define MAX_ALLOC (SIZE_MAX / 4)

typedef struct block {
  struct block *next; /* older */
  size_t capacity, used;
  max_align_t bytes[];
} block_t;

struct kit_arena {
  block_t *top; /* the one that is being filled; the oldest is the first block */
  uint64_t nbytes;
  int failed;
  pthread_mutex_t lock;
};

static char *block_bytes(block_t *b) { return (char *)b->bytes; }

static block_t *block_push(kit_arena_t *a, size_t need) {
  size_t capacity = a->top ? a->top->capacity * 2 : FIRST_BLOCK;
  if (capacity > LAST_BLOCK) capacity = LAST_BLOCK;
  if (capacity < need) capacity = need;
  block_t *b = malloc(sizeof *b + capacity);
  if (!b) return NULL;
  b->next = a->top;
  b->capacity = capacity;
  b->used = 0;
  POISON(block_bytes(b), capacity);
  a->top = b;
  return b;
}

static void block_free(block_t *b) {
  UNPOISON(block_bytes(b), b->capacity);
  free(b);
}

kit_arena_t *kit_arena_create(void) {
  kit_arena_t *a = calloc(1, sizeof *a);
  if (!a) return NULL;
  if (pthread_mutex_init(&a->lock, NULL) != 0) {
    free(a);
    return NULL;
  }
  return a;
}

void kit_arena_destroy(kit_arena_t *a) {
  if (!a) return;
  while (a->top) {
    block_t *older = a->top->next;
    block_free(a->top);
    a->top = older;
  }
  pthread_mutex_destroy(&a->lock);
  free(a);
}

void kit_arena_reset(kit_arena_t *a) {
  pthread_mutex_lock(&a->lock);
  while (a->top && a->top->next) {
    block_t *older = a->top->next;
    block_free(a->top);
    a->top = older;
  }
  if (a->top) {
    a->top->used = 0;
    POISON(block_bytes(a->top), a->top->capacity);
  }
  a->nbytes = 0;
  a->failed = 0;
  pthread_mutex_unlock(&a->lock);
}

/* Offset of the next free byte of b with this alignment. */
static size_t aligned_offset(block_t *b, size_t align) {
  uintptr_t at = (uintptr_t)(block_bytes(b) + b->used);
  uintptr_t up = (at + (align - 1)) & ~(uintptr_t)(align - 1);
  return (size_t)(up - (uintptr_t)block_bytes(b));
}

static void *bump(kit_arena_t *a, size_t align, size_t size) {
  if (size > MAX_ALLOC || align > MAX_ALLOC) return NULL;
  block_t *b = a->top;
  size_t at = b ? aligned_offset(b, align) : 0;
  if (!b || at > b->capacity || b->capacity - at < size) {
    b = block_push(a, size + align);
    if (!b) return NULL;
    at = aligned_offset(b, align);
  }
  b->used = at + size;
  a->nbytes += size;
  void *p = block_bytes(b) + at;
  UNPOISON(p, size);
  return p;
}

void *kit_arena_alloc(kit_arena_t *a, size_t align, size_t size) {
  if (align == 0) align = sizeof(max_align_t);
  if ((align & (align - 1)) != 0) return NULL;
  if (align < 8) align = 8; /* the granule of AddressSanitizer; pointers inside stay separate */
  pthread_mutex_lock(&a->lock);
  void *p = bump(a, align, size);
  a->failed |= !p;
  pthread_mutex_unlock(&a->lock);
  if (p && size) memset(p, 0, size);
  return p;
}

void *kit_arena_copy(kit_arena_t *a, size_t align, const void *src, size_t size) {
  void *p = kit_arena_alloc(a, align, size);
  if (p && size) memcpy(p, src, size);
  return p;
}

char *kit_arena_text(kit_arena_t *a, const char *src, size_t size) {
  if (size >= MAX_ALLOC) return NULL;
  char *p = kit_arena_alloc(a, 1, size + 1);
  if (p && size) memcpy(p, src, size);
  return p;
}

int kit_arena_failed(const kit_arena_t *a) { return a->failed; }
uint64_t kit_arena_nbytes(const kit_arena_t *a) { return a->nbytes; }
