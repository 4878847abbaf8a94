/* Whether places over one storage share elements, for operators that write several arguments. */
#ifndef FZ_OVERLAP_H
#define FZ_OVERLAP_H

#include "rewriting.h"

/* 1: two different ones of the n places certainly or possibly share an element. One place named several times is no
 * overlap. O(n log n), and O(pairs) among places of one storage whose ranges cross. */
int fz_any_overlap(const fz_rewrite_t *w, uint32_t *places, uint32_t n);

#endif
