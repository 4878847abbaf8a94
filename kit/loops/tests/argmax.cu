loop 40 x 700 reduced 1
; GPU: rows, blocks 40 x 192, team 192, vector 4, chunks 1, splits 1
load f32 [700, 1] align 16
max f32 f32 "a" a=x0 ; row, pass 0
each f32 i64 "a == %0 || (a != a && %0 != %0) ? @ : 0x7fffffffffffffff" a=x0 %0=v0 ; pass 1
min i64 i64 "%1" %1=v1 ; row, pass 1
store f32 [1, 0] align 16 row v0
store i64 [1, 0] align 16 row v2

LP_KERNEL(argmax, 3, 192) {
const int length = 700, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 40) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 700;
float *q1 = (float *)LP_AT(1) + i0;
int64_t *q2 = (int64_t *)LP_AT(2) + i0;
LP_ALIGN16 float w0[4];
{
const int i = lane * 4;
if (i < length) {
lp_move(&w0[0], &q0[i], 16);
}
}
float a0 = -INFINITY;
{
const int i = lane * 4;
if (i < length) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
{
const float t = (float)((x0));
a0 = LP_LARGER(a0, t);
}
}
}
}
__shared__ float s0[32];
lp_leave_max_f32(a0, s0, 6);
lp_sync(0, 192);
const float v0 = ((float)lp_found_max_f32(s0, 6));
int64_t a2 = INT64_MAX;
{
const int i = lane * 4;
if (i < length) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const int64_t place = (uint32_t)(i + j);
const float x0 = w0[j];
const int64_t v1 = ((int64_t)((x0) == (v0) || ((x0) != (x0) && (v0) != (v0)) ? place : 0x7fffffffffffffff));
{
const int64_t t = (int64_t)((v1));
a2 = LP_SMALLER(a2, t);
}
}
}
}
__shared__ int64_t s2[32];
lp_leave_min_i64(a2, s2, 6);
lp_sync(0, 192);
const int64_t v2 = ((int64_t)lp_found_min_i64(s2, 6));
if (lane == 0) q1[0] = v0;
if (lane == 0) q2[0] = v2;
}
}
