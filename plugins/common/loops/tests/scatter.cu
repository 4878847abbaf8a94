loop 700 x 600 reduced 1 ; columns
; GPU: places, blocks 110 x 256, team 32, vector 1, chunks 1, splits 38
load i64 [0, 1]
load f32 [1, 700]
each i64 bool "a == b" a=x0 b=3
each f32 f32 "b != 0 ? T(0) : a" a=x1 b=v0
store f32 [1, 0] at x0 * 700 of 11 add v1

LP_KERNEL(scatter_begin, 5, 512) {
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
key = key * 11u + (uint32_t)lp_place(x0, 11, &wrong);
keys[row] = key;
rows[row] = (uint32_t)row;
}
__syncthreads();
lp_sort(keys, rows, more_keys, more_rows, 600, 8);
if (wrong) *(int64_t *)LP_AT(3) = wrong;
}
LP_KERNEL(scatter, 5, 256) {
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
int is_begun = first > 0 && keys[first - 1] == keys[first];
float a1[1];
a1[0] = 0;
for (int e = first; e < last; e++) {
const uint32_t key = keys[e];
const int row = rows[e];
{
const int64_t x0 = q0[row];
const float x1 = q1[row * 700 + i];
const uint8_t v0 = ((uint8_t)((x0) == (INT64_C(3))) != 0);
const float v1 = ((float)((v0 ? (float)1 : (float)0) != 0 ? (float)(0) : (x1)));
a1[0] += v1;
}
const int is_end = e + 1 == length || keys[e + 1] != key;
if (!is_end && e + 1 < last) continue;
if (is_end && !is_begun) {
const int64_t j2 = (int64_t)(key) * 700;
q2[j2 + i] += (float)a1[0];
} else {
((float *)(LP_AT(4) + 9600))[(part * 2 + !is_begun) * (int)700 + outer * across + i] = a1[0];
}
a1[0] = 0;
is_begun = 0;
}
}
}
LP_KERNEL(scatter_end, 5, 256) {
int64_t wrong = 0;
const int at = (int)blockIdx.x * 256 + threadIdx.x, part = at / 700, column = at % 700;
const int across = 700, outer = column / across, i = column % across;
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 2400);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 4800);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 7200);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
const int first = part * 16, last = first + 16;
const uint32_t key = last < 600 ? keys[last - 1] : 0;
if (last < 600 && keys[last] == key && !(first > 0 && keys[first] == key && keys[first - 1] == key)) {
float a1[1] = {((float *)(LP_AT(4) + 9600))[(part * 2 + 1) * (int)700 + column]};
int low = part + 1, high = 38;
while (low < high) {
const int middle = (low + high) / 2;
if (keys[middle * 16] == key) low = middle + 1;
else high = middle;
}
#pragma unroll 16
for (int next = part + 1; next < low; next++) a1[0] += ((float *)(LP_AT(4) + 9600))[next * 2 * (int)700 + column];
const int64_t j2 = (int64_t)(key) * 700;
q2[j2 + i] += (float)a1[0];
}
}
