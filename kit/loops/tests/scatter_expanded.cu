loop 72 x 5 x 40 reduced 1 2 ; columns
; GPU: places, blocks 6 x 256, team 32, vector 1, chunks 8, splits 2
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
(void)keys, (void)rows, (void)more_keys, (void)more_rows;
__shared__ uint64_t piece[1024];
const int first = blockIdx.x * 1024;
for (int at = threadIdx.x; at < 1024; at += 512) {
const int row = first + at;
piece[at] = ~(uint64_t)0;
if (row < 200) {
const int64_t x0 = q0[(row % 40)];
uint32_t key = 0;
key = key * 2u + (uint32_t)lp_place(x0, 2, &wrong);
piece[at] = (uint64_t)key << 32 | (uint32_t)row;
}
}
lp_sort_piece(piece, 1024, 512);
for (int at = threadIdx.x; at < 1024 && first + at < 200; at += 512) {
keys[first + at] = (uint32_t)(piece[at] >> 32);
rows[first + at] = (uint32_t)piece[at];
}
if (wrong) *(int64_t *)LP_AT(3) = wrong;
}
LP_KERNEL(scatter_expanded, 5, 256) {
int64_t wrong = 0;
const int length = 200, across = 72, part = (int)(blockIdx.x / 3);
const int lane = threadIdx.x % 32, segment = threadIdx.x / 32;
const int i = (blockIdx.x % 3 * 32 + lane) * 1, outer = blockIdx.x % 3 / 3;
uint32_t *keys = (uint32_t *)(LP_AT(4) + 0);
uint32_t *rows = (uint32_t *)(LP_AT(4) + 800);
uint32_t *more_keys = (uint32_t *)(LP_AT(4) + 1600);
uint32_t *more_rows = (uint32_t *)(LP_AT(4) + 2400);
const int64_t *q0 = (const int64_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
const int first = (part * 8 + segment) * 16;
const int last = first + 16 < length ? first + 16 : length;
__shared__ float heads[256];
const int was_begun = first > 0 && first < length && keys[first - 1] == keys[first];
const int is_open = first < last && last < length && keys[last - 1] == keys[last];
int is_begun = was_begun;
float a0[1];
a0[0] = 0;
if (i < across)
for (int top = first; top < last; top += 8) {
uint32_t near[9];
int64_t w0[8];
float w1[8];
#pragma unroll
for (int c = 0; c < 9; c++) near[c] = top + c < length ? keys[top + c] : 0xffffffffu;
#pragma unroll
for (int c = 0; c < 8; c++) {
const int row = rows[top + c < length ? top + c : length - 1];
w0[c] = q0[(row % 40)];
w1[c] = q1[(row / 40) * 2880 + (row % 40) * 72 + i];
}
#pragma unroll
for (int c = 0; c < 8; c++) {
const uint32_t key = near[c];
if (key == 0xffffffffu) break;
const int row = rows[top + c];
(void)row;
{
const int64_t x0 = w0[c];
const float x1 = w1[c];
const float v0 = ((float)((x1)));
a0[0] += v0;
}
if (near[c + 1] == key) continue;
if (is_begun) {
heads[segment * 32 + lane * 1] = a0[0];
} else {
const int64_t j2 = (int64_t)(key) * 72;
q2[j2 + i] += (float)a0[0];
}
a0[0] = 0;
is_begun = 0;
}
}
if (is_open && is_begun) {
heads[segment * 32 + lane * 1] = a0[0];
}
__syncthreads();
if (i < across && is_open && !is_begun) {
const uint32_t key = keys[last - 1];
const int end = (part + 1) * 128;
for (int next = segment + 1; next < 8; next++) {
const int begin = (part * 8 + next) * 16;
if (begin >= length || keys[begin] != key) break;
a0[0] += heads[next * 32 + lane * 1];
}
if (end < length && keys[end] == key) {
((float *)(LP_AT(4) + 3200))[(part * 2 + 1) * (int)72 + outer * across + i] = a0[0];
} else {
const int64_t j2 = (int64_t)(key) * 72;
q2[j2 + i] += (float)a0[0];
}
}
if (i < across && segment == 0 && was_begun) {
const uint32_t key = keys[first];
a0[0] = heads[0 * 32 + lane * 1];
for (int next = 1; next < 8; next++) {
const int begin = (part * 8 + next) * 16;
if (begin >= length || keys[begin] != key) break;
a0[0] += heads[next * 32 + lane * 1];
}
((float *)(LP_AT(4) + 3200))[(part * 2) * (int)72 + outer * across + i] = a0[0];
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
const int first = part * 128, last = first + 128;
const uint32_t key = last < 200 ? keys[last - 1] : 0;
if (last < 200 && keys[last] == key && !(first > 0 && keys[first] == key && keys[first - 1] == key)) {
float a0[1] = {((float *)(LP_AT(4) + 3200))[(part * 2 + 1) * (int)72 + column]};
int low = part + 1, high = 2;
while (low < high) {
const int middle = (low + high) / 2;
if (keys[middle * 128] == key) low = middle + 1;
else high = middle;
}
#pragma unroll 16
for (int next = part + 1; next < low; next++) a0[0] += ((float *)(LP_AT(4) + 3200))[next * 2 * (int)72 + column];
const int64_t j2 = (int64_t)(key) * 72;
q2[j2 + i] += (float)a0[0];
}
}
