/* Greedy non-maximum suppression: of boxes in order of falling score, each is stored that overlaps no kept one by more
 * than a threshold. O(boxes x boxes stored). */
#ifndef TV_NMS_H
#define TV_NMS_H

#include <stdint.h>

/* boxes [n, 4] of (x1, y1, x2, y2); order [n]: box numbers by falling score; keep[k] = 1: the k-th in that order is
 * stored. is_single: areas and quotients are rounded to float32, as they are compared there. */
void tv_nms_keep(const double *boxes, const double *order, int64_t n, double threshold, int32_t is_single,
                 double *keep);

#endif
