loop 700 x 600 reduced 1 ; columns
; GPU: places, blocks 110 x 256, team 32, vector 1, chunks 1, splits 38
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
for (int row = threadIdx.x; row < 600; row += 512) {
const int64_t x0 = q0[row];
uint32_t key = 0;
key = key * 11u + (uint32_t)lp_place(lp_wrap(x0, 11), 11, &wrong);
keys[row] = key;
rows[row] = (uint32_t)row;
}
__syncthreads();
lp_sort(keys, rows, more_keys, more_rows, 600, 8);
if (wrong) *(int64_t *)LP_AT(3) = wrong;
}
LP_KERNEL(index_copy, 5, 256) {
int64_t wrong = 0;
const int length = 600, across = 700;
const int lane = threadIdx.x % 32, part = (int)(blockIdx.x / 22) * 8 + threadIdx.x / 32;
const int i = (blockIdx.x % 22 * 32 + lane) * 1, outer = blockIdx.x % 22 / 22;
if (i < across && part < 38) {
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 2400);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 4800);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 7200);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
const int first = part * 16, last = first + 16 < length ? first + 16 : length;
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
}
