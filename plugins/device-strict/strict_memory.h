/* Buffers that nothing can touch unless they are opened. Each is a separate mapping:
 *
 *     | guard page | slack .. data .. slack | guard page |
 *                                        ^ end of the last page; the data ends there, or up to SD_ALIGN - 1 bytes
 *                                        before
 *
 * Between alloc and open, and after close, every access traps. An open buffer's guard pages still do; what is written
 * to its slack shows in sd_memory_overrun. Fresh memory holds poison: NaN as float of any width, and more than any
 * index as integer. The addresses of freed buffers trap as well, until SD_N_FREED further ones were freed. */
#ifndef STRICT_MEMORY_H
#define STRICT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define SD_ALIGN 64u
#define SD_N_FREED 512u
#define SD_POISON 0x7fffu /* each two bytes of fresh memory */

typedef struct sd_buffer {
  char *data;
  uint64_t nbytes;
  char *begin, *end; /* pages between the guards */
} sd_buffer_t;

typedef struct sd_memory {
  sd_buffer_t *rows; /* by address */
  size_t n;
  uint32_t capacity;
  uint64_t nbytes; /* of all buffers, as they were requested */
  size_t page;
  int is_open;
  struct {
    void *map;
    size_t nbytes;
  } freed[SD_N_FREED];
  size_t n_freed; /* ever */
} sd_memory_t;

void sd_memory_init(sd_memory_t *m);
void sd_memory_deinit(sd_memory_t *m);
int sd_memory_alloc(sd_memory_t *m, uint64_t nbytes, char **out); /* 0: no memory. Open if the others are */
void sd_memory_free(sd_memory_t *m, const sd_buffer_t *b);
/* Closed pages of the caller's, between guards of his, that are a buffer from now on; 0: no memory. */
int sd_memory_adopt(sd_memory_t *m, char *pages, uint64_t nbytes);
void sd_memory_disown(sd_memory_t *m,
                      const sd_buffer_t *b); /* one that was adopted: closed and empty, the addresses stay his */
/* The last buffer that begins at or before the address, NULL: none. */
const sd_buffer_t *sd_memory_before(const sd_memory_t *m, uint64_t address);
/* The buffer that the whole range is in; NULL: none. */
const sd_buffer_t *sd_memory_find(const sd_memory_t *m, uint64_t address, uint64_t nbytes);
int sd_memory_open(sd_memory_t *m, int is_open);       /* all of them; 0: the system refuses */
int sd_buffer_open(const sd_buffer_t *b, int is_open); /* one */
/* A buffer whose slack was written to, which is mended; NULL: none. All must be open. out_at: where, counted from
 * the data. */
const sd_buffer_t *sd_memory_overrun(const sd_memory_t *m, int64_t *out_at);
void sd_poison(void *memory, uint64_t nbytes);

#endif
