/* checksums.c - see checksums.h. */
#define _GNU_SOURCE /* MADV_POPULATE_READ, sched_getaffinity */
#include "checksums.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zlib.h>

#define PIECE (UINT64_C(4) << 20) /* bytes */
enum { MOST_THREADS = 16 };

typedef struct piece {
  p2_member_t *member;
  uint64_t at, nbytes; /* of the member */
  uint32_t crc;
} piece_t;

typedef struct job {
  piece_t *pieces;
  uint64_t n;
  _Atomic uint64_t next;
} job_t;

uint32_t p2_checksum(const uint8_t *data, uint64_t n) {
  uLong crc = crc32(0, NULL, 0);
  while (n) {
    uInt step = (uInt)(n > (1u << 30) ? (1u << 30) : n); /* zlib counts in 32 bits */
    crc = crc32(crc, data, step);
    data += step;
    n -= step;
  }
  return (uint32_t)crc;
}

/* The pages of a mapped file all at once, not by a fault for every few; memory of another kind is there already. */
static void map_pages(const uint8_t *data, uint64_t n) {
#ifdef MADV_POPULATE_READ
  const uintptr_t page = 4096, begin = (uintptr_t)data / page * page;
  madvise((void *)begin, (uintptr_t)data + n - begin, MADV_POPULATE_READ); /* refused: the faults come one by one */
#else
  (void)data, (void)n;
#endif
}

static void *sum_some(void *self) {
  job_t *j = self;
  for (uint64_t k; (k = atomic_fetch_add(&j->next, 1)) < j->n;) {
    piece_t *p = &j->pieces[k];
    map_pages(p->member->data + p->at, p->nbytes);
    p->crc = p2_checksum(p->member->data + p->at, p->nbytes);
  }
  return NULL;
}

static void sum_on_threads(job_t *j) {
  pthread_t threads[MOST_THREADS];
  cpu_set_t set;
  const uint64_t n_cpus = sched_getaffinity(0, sizeof set, &set) ? 1 : (uint64_t)CPU_COUNT(&set);
  uint32_t n = 0;
  while (n + 1 < MOST_THREADS && n + 1 < n_cpus && n + 1 < j->n && pthread_create(&threads[n], NULL, sum_some, j) == 0)
    n++;
  sum_some(j);
  while (n) pthread_join(threads[--n], NULL);
}

/* Stored, with a checksum, and not compared yet. */
static int is_wanted(const p2_member_t *m) { return m->method == 0 && m->crc != 0 && !m->is_checked && !m->is_summed; }

static uint64_t count_pieces(p2_member_t *const *members, uint32_t n) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    if (is_wanted(members[i])) count += (members[i]->nbytes + PIECE - 1) / PIECE;
  return count;
}

static void divide(p2_member_t *const *members, uint32_t n, job_t *j) {
  for (uint32_t i = 0; i < n; i++) {
    p2_member_t *m = members[i];
    if (!is_wanted(m)) continue;
    m->is_summed = 1;
    for (uint64_t at = 0; at < m->nbytes; at += PIECE)
      j->pieces[j->n++] = (piece_t){m, at, m->nbytes - at < PIECE ? m->nbytes - at : PIECE, 0};
  }
}

void p2_checksums_ahead(p2_member_t *const *members, uint32_t n) {
  const uint64_t count = count_pieces(members, n);
  job_t j = {.pieces = count ? malloc(count * sizeof *j.pieces) : NULL};
  if (!j.pieces) return;
  divide(members, n, &j);
  sum_on_threads(&j);
  for (uint64_t k = 0; k < j.n; k++) { /* a member's pieces stand one after the other, from its first byte */
    const piece_t *p = &j.pieces[k];
    uLong crc = p->crc;
    while (k + 1 < j.n && j.pieces[k + 1].member == p->member && j.pieces[k + 1].at) {
      k++;
      crc = crc32_combine(crc, j.pieces[k].crc, (z_off_t)j.pieces[k].nbytes);
    }
    p->member->is_checked |= (uint32_t)crc == p->member->crc;
  }
  free(j.pieces);
}
