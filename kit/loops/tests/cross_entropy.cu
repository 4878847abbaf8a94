loop 6 x 96 reduced 1
; GPU: rows, blocks 6 x 96, team 96, vector 1, chunks 1, splits 1, parts 6
load f32 [96, 1]
load i64 [1, 0]
load f64 [0, 0]
load f32 [0, 0]
max f32 f32 "a" a=x0 ; row, pass 0
each f32 f32 "exp(a - %0)" a=x0 %0=v0 ; pass 1, kept
sum f32 f32 "%1" %1=v1 ; row, pass 1
each i64 bool "@ == b" b=x1
max f32 f32 "%3 != 0 ? a : -T(INFINITY)" a=x0 %3=v3 ; row, pass 0
each i64 bool "b == e" b=x1 e=-100 ; row, pass 0
across f64 f64 "(%5 != 0 ? T(0) : log(%2) + %0 - %4) * h" h=x2 %0=v0 %2=v2 %4=v4 %5=v5 ; row, pass 2
each f32 f32 "T(1) / %2" %2=v2 ; row, pass 2
each f64 f32 "%5 != 0 ? T(0) : a * h" a=x3 h=x2 %5=v5 ; row, pass 0
each f32 f32 "(%1 * %3 - (%4 != 0 ? T(1) : T(0))) * %6" %1=v1 %3=v7 %4=v3 %6=v8 ; pass 2
store f64 [0, 0] v6
store f32 [96, 1] v9

LP_KERNEL(cross_entropy, 7, 96) {
const int length = 96, lane = threadIdx.x, row = (int)blockIdx.x, part = row;
double a6 = 0;
if (row < 6) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 96;
const int64_t *q1 = (const int64_t *)LP_AT(1) + i0;
const double *q2 = (const double *)LP_AT(2);
const float *q3 = (const float *)LP_AT(3);
double *q4 = (double *)LP_AT(4);
float *q5 = (float *)LP_AT(5) + i0 * 96;
const int64_t x1 = q1[0];
const double x2 = q2[0];
const float x3 = q3[0];
float k1[1];
const uint8_t v5 = ((uint8_t)((x1) == (INT64_C(-100))) != 0);
const float v8 = ((float)((v5 ? (double)1 : (double)0) != 0 ? (double)(0) : ((double)x3) * (x2)));
float w0[1];
{
const int i = lane * 1;
{
w0[0] = q0[i];
}
}
float a0 = -INFINITY;
float a4 = -INFINITY;
{
const int i = lane * 1;
{
{
const int64_t place = (uint32_t)(i);
const float x0 = w0[0];
{
const float t = (float)((x0));
a0 = LP_LARGER(a0, t);
}
const uint8_t v3 = ((uint8_t)(place == (x1)) != 0);
{
const float t = (float)((v3 ? (float)1 : (float)0) != 0 ? (x0) : -(float)(INFINITY));
a4 = LP_LARGER(a4, t);
}
}
}
}
__shared__ float s0[32], s4[32];
lp_leave_two_max_f32(a0, a4, s0, s4, 3);
lp_sync(0, 96);
const float v0 = ((float)lp_found_max_f32(s0, 3));
const float v4 = ((float)lp_found_max_f32(s4, 3));
float a2 = 0;
{
const int i = lane * 1;
{
{
const float x0 = w0[0];
const float v1 = ((float)(lp_exp_f32((x0) - (v0))));
k1[0] = v1;
{
const float t = (float)((v1));
a2 = LP_ADD(a2, t);
}
}
}
}
__shared__ float s2[32];
lp_leave_sum_f32(a2, s2, 3);
lp_sync(0, 96);
const float v2 = ((float)lp_found_sum_f32(s2, 3));
a6 += (double)(((v5 ? (double)1 : (double)0) != 0 ? (double)(0) : lp_log_f64(((double)v2)) + ((double)v0) - ((double)v4)) * (x2));
const float v7 = ((float)((float)(1) / (v2)));
{
const int i = lane * 1;
{
{
const int64_t place = (uint32_t)(i);
const float v1 = k1[0];
const uint8_t v3 = ((uint8_t)(place == (x1)) != 0);
const float v9 = ((float)(((v1) * (v7) - ((v3 ? (float)1 : (float)0) != 0 ? (float)(1) : (float)(0))) * (v8)));
q5[i] = v9;
}
}
}
if (lane == 0) ((double *)(LP_AT(6) + 0))[part] = a6;
}
}
LP_KERNEL(cross_entropy_end, 7, 256) {
if (blockIdx.x >= 0 && blockIdx.x < 1) {
double *q4 = (double *)LP_AT(4);
double a = 0;
for (int part = threadIdx.x; part < 6; part += 256) a += ((double *)(LP_AT(6) + 0))[part];
__shared__ double s6[32];
const double v6 = ((double)lp_block_sum_f64(a, s6, 8, 0));
if (threadIdx.x == 0) q4[0] = v6;
}
}
