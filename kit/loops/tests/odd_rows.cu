loop 6 x 90 reduced 1
; GPU: rows, blocks 2 x 128, team 32, vector 8, chunks 1, splits 1, parts 6
load bf16 [96, 1] align 16
load i64 [1, 0]
load f64 [0, 0]
load f32 [0, 0]
max f32 f32 "a" a=x0 ; row, pass 0
each f32 f32 "exp(a - %0)" a=x0 %0=v0 ; pass 1, kept
sum f32 f32 "%1" %1=v1 ; row, pass 1
each i64 bool "@ == b" b=x1
max f32 f32 "%3 != 0 ? a : -T(INFINITY)" a=x0 %3=v3 ; row, pass 0
across f64 f64 "(log(%2) + %0 - %4) * h" h=x2 %0=v0 %2=v2 %4=v4 ; row, pass 2
each f32 f32 "T(1) / %2" %2=v2 ; row, pass 2
each f32 f32 "(%1 * %6 - (%3 != 0 ? T(1) : T(0))) * h" h=x3 %1=v1 %3=v3 %6=v6 ; pass 2
store f64 [0, 0] v5
store bf16 [96, 1] align 16 v7

LP_KERNEL(odd_rows, 7, 128) {
const int length = 90, lane = threadIdx.x % 32, row = (int)blockIdx.x * 4 + threadIdx.x / 32, part = row;
double a5 = 0;
if (row < 6) {
const int i0 = row;
const uint16_t *q0 = (const uint16_t *)LP_AT(0) + i0 * 96;
const int64_t *q1 = (const int64_t *)LP_AT(1) + i0;
const double *q2 = (const double *)LP_AT(2);
const float *q3 = (const float *)LP_AT(3);
double *q4 = (double *)LP_AT(4);
uint16_t *q5 = (uint16_t *)LP_AT(5) + i0 * 96;
const int64_t x1 = q1[0];
const double x2 = q2[0];
const float x3 = q3[0];
float k1[8];
LP_ALIGN16 uint16_t w0[8];
{
const int i = lane * 8;
if (i < length) {
const int n = length - i < 8 ? (int)(length - i) : 8;
{
if (n == 8) lp_move(&w0[0], &q0[i], 16);
else
#pragma unroll
for (int j = 0; j < 8; j++) w0[j] = q0[(i + (j < n ? j : 0))];
}
}
}
float a0 = -INFINITY;
float a4 = -INFINITY;
{
const int i = lane * 8;
if (i < length) {
const int n = length - i < 8 ? (int)(length - i) : 8;
a0 = LP_LARGER(a0, lp_max_of_bf16(&w0[0], 8));
if ((uint32_t)((int)(x1) - i) >= 8) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const int64_t place = (uint32_t)(i + j);
const float x0 = lp_bf16_at(w0, j);
const uint8_t v3 = 0;
}
} else {
#pragma unroll
for (int j = 0; j < 8; j++) {
const int64_t place = (uint32_t)(i + j);
const float x0 = lp_bf16_at(w0, j);
const uint8_t v3 = ((uint8_t)(place == (x1)) != 0);
{
const float t = (float)((v3 ? (float)1 : (float)0) != 0 ? (x0) : -(float)(INFINITY));
if (j < n) a4 = LP_LARGER(a4, t);
}
}
}
}
}
lp_warp_two_max_f32(&a0, &a4);
const float v0 = ((float)a0);
const float v4 = ((float)a4);
float a2 = 0;
{
const int i = lane * 8;
if (i < length) {
const int n = length - i < 8 ? (int)(length - i) : 8;
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
const float v1 = ((float)(lp_exp_between_coarse_f32(x0, v0)));
k1[j] = v1;
{
const float t = (float)((v1));
if (j < n) a2 = LP_ADD(a2, t);
}
}
}
}
a2 = lp_warp_sum_f32(a2);
const float v2 = ((float)a2);
a5 += (double)((lp_log_f64(((double)v2)) + ((double)v0) - ((double)v4)) * (x2));
const float v6 = ((float)((float)(1) / (v2)));
{
const int i = lane * 8;
if (i < length) {
const int n = length - i < 8 ? (int)(length - i) : 8;
LP_ALIGN16 uint16_t y5[8];
if ((uint32_t)((int)(x1) - i) >= 8) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const int64_t place = (uint32_t)(i + j);
const float v1 = k1[j];
const uint8_t v3 = 0;
const float v7 = ((float)(((v1) * (v6) - ((v3 ? (float)1 : (float)0) != 0 ? (float)(1) : (float)(0))) * (x3)));
y5[j] = lp_to_bf16(lp_stored_bf16((float)v7));
}
} else {
#pragma unroll
for (int j = 0; j < 8; j++) {
const int64_t place = (uint32_t)(i + j);
const float v1 = k1[j];
const uint8_t v3 = ((uint8_t)(place == (x1)) != 0);
const float v7 = ((float)(((v1) * (v6) - ((v3 ? (float)1 : (float)0) != 0 ? (float)(1) : (float)(0))) * (x3)));
y5[j] = lp_to_bf16(lp_stored_bf16((float)v7));
}
}
if (n == 8) lp_move(&q5[i], y5, 16);
else
#pragma unroll
for (int j = 0; j < 8; j++) if (j < n) q5[i + j] = y5[j];
}
}
if (lane == 0) ((double *)(LP_AT(6) + 0))[part] = a5;
}
}
LP_KERNEL(odd_rows_end, 7, 256) {
if (blockIdx.x >= 0 && blockIdx.x < 1) {
double *q4 = (double *)LP_AT(4);
double a = 0;
for (int part = threadIdx.x; part < 6; part += 256) a += ((double *)(LP_AT(6) + 0))[part];
__shared__ double s5[32];
const double v5 = ((double)lp_block_sum_f64(a, s5, 8, 0));
if (threadIdx.x == 0) q4[0] = v5;
}
}
