loop 50 x 300 reduced 1
; GPU: rows, blocks 50 x 96, team 96, vector 4, chunks 1, splits 1
load f32 [300, 1] align 16
load i32 [300, 1] align 16
prod f32 f32 "a" a=x0 ; row, pass 0
max f32 f32 "a" a=x0 ; row, pass 0
min f32 f32 "a" a=x0 ; row, pass 0
each i64 bool "a != 0" a=x1
max i64 bool "%0" %0=v3 ; row, pass 0
min i64 bool "%0" %0=v3 ; row, pass 0
sum i64 i64 "%0" %0=v3 ; row, pass 0
prod i64 i64 "a" a=x1 ; row, pass 0
store f32 [1, 0] row v0
store f32 [1, 0] row v1
store f32 [1, 0] row v2
store bool [1, 0] row v4
store bool [1, 0] row v5
store i64 [1, 0] row v6
store i64 [1, 0] row v7

LP_KERNEL(reductions, 9, 96) {
const int length = 300, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 50) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 300;
const int32_t *q1 = (const int32_t *)LP_AT(1) + i0 * 300;
float *q2 = (float *)LP_AT(2) + i0;
float *q3 = (float *)LP_AT(3) + i0;
float *q4 = (float *)LP_AT(4) + i0;
uint8_t *q5 = (uint8_t *)LP_AT(5) + i0;
uint8_t *q6 = (uint8_t *)LP_AT(6) + i0;
int64_t *q7 = (int64_t *)LP_AT(7) + i0;
int64_t *q8 = (int64_t *)LP_AT(8) + i0;
LP_ALIGN16 float w0[4];
LP_ALIGN16 int32_t w1[4];
{
const int i = lane * 4;
if (i < length) {
lp_move(&w0[0], &q0[i], 16);
lp_move(&w1[0], &q1[i], 16);
}
}
float a0 = 1;
float a1 = -INFINITY;
float a2 = INFINITY;
int64_t a4 = INT64_MIN;
int64_t a5 = INT64_MAX;
int64_t a6 = 0;
int64_t a7 = 1;
{
const int i = lane * 4;
if (i < length) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
const int32_t x1 = w1[j];
{
const float t = (float)((x0));
a0 = LP_TIMES(a0, t);
}
{
const float t = (float)((x0));
a1 = LP_LARGER(a1, t);
}
{
const float t = (float)((x0));
a2 = LP_SMALLER(a2, t);
}
const uint8_t v3 = ((uint8_t)(((int64_t)x1) != 0) != 0);
{
const int64_t t = (int64_t)((v3 ? (int64_t)1 : (int64_t)0));
a4 = LP_LARGER(a4, t);
}
{
const int64_t t = (int64_t)((v3 ? (int64_t)1 : (int64_t)0));
a5 = LP_SMALLER(a5, t);
}
{
const int64_t t = (int64_t)((v3 ? (int64_t)1 : (int64_t)0));
a6 = LP_ADD(a6, t);
}
{
const int64_t t = (int64_t)(((int64_t)x1));
a7 = LP_TIMES(a7, t);
}
}
}
}
__shared__ float s0[32];
lp_leave_prod_f32(a0, s0, 3);
__shared__ float s1[32];
lp_leave_max_f32(a1, s1, 3);
__shared__ float s2[32];
lp_leave_min_f32(a2, s2, 3);
__shared__ int64_t s4[32];
lp_leave_max_i64(a4, s4, 3);
__shared__ int64_t s5[32];
lp_leave_min_i64(a5, s5, 3);
__shared__ int64_t s6[32];
lp_leave_sum_i64(a6, s6, 3);
__shared__ int64_t s7[32];
lp_leave_prod_i64(a7, s7, 3);
lp_sync(0, 96);
const float v0 = ((float)lp_found_prod_f32(s0, 3));
const float v1 = ((float)lp_found_max_f32(s1, 3));
const float v2 = ((float)lp_found_min_f32(s2, 3));
const uint8_t v4 = ((uint8_t)lp_found_max_i64(s4, 3));
const uint8_t v5 = ((uint8_t)lp_found_min_i64(s5, 3));
const int64_t v6 = ((int64_t)lp_found_sum_i64(s6, 3));
const int64_t v7 = ((int64_t)lp_found_prod_i64(s7, 3));
if (lane == 0) q2[0] = v0;
if (lane == 0) q3[0] = v1;
if (lane == 0) q4[0] = v2;
if (lane == 0) q5[0] = v4;
if (lane == 0) q6[0] = v5;
if (lane == 0) q7[0] = v6;
if (lane == 0) q8[0] = v7;
}
}
