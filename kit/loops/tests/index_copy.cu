loop 700 x 600 reduced 1 ; columns
; GPU: places, blocks 110 x 256, team 32, vector 1, chunks 1, splits 5
load i64 [0, 1]
load f32 [1, 700]
each f32 f32 "a" a=x1
store f32 [1, 0] at x0 * 700 of 11 wraps v0

LP_KERNEL(index_copy_begin, 5, 512) {
int64_t wrong = 0;
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 2400);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 4800);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 7200);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
(void)keys, (void)rows, (void)more_keys, (void)more_rows;
__shared__ uint64_t piece[1024];
const int first = blockIdx.x * 1024;
for (int at = threadIdx.x; at < 1024; at += 512) {
const int row = first + at;
piece[at] = ~(uint64_t)0;
if (row < 600) {
const int64_t x0 = q0[row];
uint32_t key = 0;
key = key * 11u + (uint32_t)lp_place(lp_wrap(x0, 11), 11, &wrong);
piece[at] = (uint64_t)key << 32 | (uint32_t)row;
}
}
lp_sort_piece(piece, 1024, 512);
for (int at = threadIdx.x; at < 1024 && first + at < 600; at += 512) {
keys[first + at] = (uint32_t)(piece[at] >> 32);
rows[first + at] = (uint32_t)piece[at];
}
if (wrong) *(int64_t *)LP_AT(3) = wrong;
}
LP_KERNEL(index_copy, 5, 256) {
int64_t wrong = 0;
const int length = 600, across = 700, part = (int)(blockIdx.x / 22);
const int lane = threadIdx.x % 32, segment = threadIdx.x / 32;
const int i = (blockIdx.x % 22 * 32 + lane) * 1, outer = blockIdx.x % 22 / 22;
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 2400);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 4800);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 7200);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
const int first = (part * 8 + segment) * 16;
const int last = first + 16 < length ? first + 16 : length;
if (i < across)
for (int e = first; e < last; e++) {
const uint32_t key = keys[e];
if (e + 1 < length && keys[e + 1] == key) continue;
const int row = rows[e];
const int64_t j2 = (int64_t)(key) * 700;
{
const int64_t x0 = q0[row];
const float x1 = q1[row * 700 + i];
const float v0 = ((float)((x1)));
q2[j2 + i] = v0;
}
}
}
