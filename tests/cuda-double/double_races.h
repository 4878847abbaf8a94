/* Which accesses to device memory are ordered: vector clocks (Mattern 1988; Lamport's happens-before). Each stream
 * counts its items and knows how far it is after every other: a value that it waits for brings what the stream that
 * wrote it knew. What the host puts on a stream knows of everything that was done by then, since the host may have
 * waited for it: races that a synchronous host hides are not found, and none is reported that is not one. */
#ifndef DOUBLE_RACES_H
#define DOUBLE_RACES_H

#include <stdint.h>

enum { RC_STREAMS = 64, RC_KEPT = 4096, RC_WORDS = 4096 };

typedef struct rc_clock { /* of a stream */
  uint32_t stream;
  uint64_t of[RC_STREAMS]; /* by stream: its items that are after this one */
  uint64_t known;          /* all items up to this one are */
} rc_clock_t;

typedef struct rc_access {
  uint64_t begin, end, at; /* at: the stream's count */
  uint64_t number;         /* among the items of all streams */
  int is_written;
  const char *what;
} rc_access_t;

typedef struct rc_word { /* what streams write for others to wait for */
  uint64_t address, value;
  rc_clock_t clock;
} rc_word_t;

typedef struct rc_races {
  uint64_t n_done, n_streams;
  rc_access_t kept[RC_STREAMS][RC_KEPT]; /* the latest of each stream, a ring */
  uint64_t n_kept[RC_STREAMS];
  rc_word_t words[RC_WORDS]; /* by address, open addressing; those that find no place order nothing */
} rc_races_t;

void rc_clock_init(rc_races_t *r, rc_clock_t *c);
uint64_t rc_done(const rc_races_t *r);
/* The stream begins its next item, which the host put there when `known` items had been done. */
void rc_begin(rc_races_t *r, rc_clock_t *c, uint64_t known);
/* 1: it is in no order with one of another stream, of which one writes; reported on the standard error. */
int rc_access(rc_races_t *r, const rc_clock_t *c, uint64_t address, uint64_t nbytes, int is_written, const char *what);
void rc_release(rc_races_t *r, const rc_clock_t *c, uint64_t word, uint64_t value);
void rc_acquire(rc_races_t *r, rc_clock_t *c, uint64_t word, uint64_t value);
void rc_forget(rc_races_t *r); /* the host has waited for all: memory may be another's from here on */

#endif
