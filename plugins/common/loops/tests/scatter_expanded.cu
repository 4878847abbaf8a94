loop 72 x 5 x 40 reduced 1 2 ; columns
; GPU: places, blocks 6 x 256, team 32, vector 1, chunks 1, splits 13
load i64 [0, 0, 1]
load f32 [1, 2880, 72]
each f32 f32 "a" a=x1
store f32 [1, 0, 0] at x0 * 72 of 2 add v0

LP_KERNEL(scatter_expanded_begin, 5, 512) {
int64_t wrong = 0;
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 800);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 1600);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 2400);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
for (int row = threadIdx.x; row < 200; row += 512) {
const int64_t x0 = q0[(row % 40)];
uint32_t key = 0;
key = key * 2u + (uint32_t)lp_place(x0, 2, &wrong);
keys[row] = key;
rows[row] = (uint32_t)row;
}
__syncthreads();
lp_sort(keys, rows, more_keys, more_rows, 200, 8);
if (wrong) *(int64_t *)LP_AT(3) = wrong;
}
LP_KERNEL(scatter_expanded, 5, 256) {
int64_t wrong = 0;
const int length = 200, across = 72;
const int lane = threadIdx.x % 32, part = (int)(blockIdx.x / 3) * 8 + threadIdx.x / 32;
const int i = (blockIdx.x % 3 * 32 + lane) * 1, outer = blockIdx.x % 3 / 3;
if (i < across && part < 13) {
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 800);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 1600);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 2400);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
const int first = part * 16, last = first + 16 < length ? first + 16 : length;
int is_begun = first > 0 && keys[first - 1] == keys[first];
float a0[1];
a0[0] = 0;
for (int e = first; e < last; e++) {
const uint32_t key = keys[e];
const int row = rows[e];
{
const int64_t x0 = q0[(row % 40)];
const float x1 = q1[(row / 40) * 2880 + (row % 40) * 72 + i];
const float v0 = ((float)((x1)));
a0[0] += v0;
}
const int is_end = e + 1 == length || keys[e + 1] != key;
if (!is_end && e + 1 < last) continue;
if (is_end && !is_begun) {
const int64_t j2 = (int64_t)(key) * 72;
q2[j2 + i] += (float)a0[0];
} else {
((float *)(LP_AT(4) + 3200))[(part * 2 + !is_begun) * (int)72 + outer * across + i] = a0[0];
}
a0[0] = 0;
is_begun = 0;
}
}
}
LP_KERNEL(scatter_expanded_end, 5, 256) {
int64_t wrong = 0;
const int at = (int)blockIdx.x * 256 + threadIdx.x, part = at / 72, column = at % 72;
const int across = 72, outer = column / across, i = column % across;
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 800);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 1600);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 2400);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
const int first = part * 16, last = first + 16;
const uint32_t key = last < 200 ? keys[last - 1] : 0;
if (last < 200 && keys[last] == key && !(first > 0 && keys[first] == key && keys[first - 1] == key)) {
float a0[1] = {((float *)(LP_AT(4) + 3200))[(part * 2 + 1) * (int)72 + column]};
int low = part + 1, high = 13;
while (low < high) {
const int middle = (low + high) / 2;
if (keys[middle * 16] == key) low = middle + 1;
else high = middle;
}
#pragma unroll 16
for (int next = part + 1; next < low; next++) a0[0] += ((float *)(LP_AT(4) + 3200))[next * 2 * (int)72 + column];
const int64_t j2 = (int64_t)(key) * 72;
q2[j2 + i] += (float)a0[0];
}
}
