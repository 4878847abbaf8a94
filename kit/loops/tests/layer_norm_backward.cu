loop 6 x 96 reduced 1
; GPU: rows, blocks 6 x 96, team 96, vector 1, chunks 1, splits 1, parts 6
load f32 [96, 1]
load f32 [96, 1]
load f32 [1, 0]
load f32 [1, 0]
load f32 [0, 1]
each f32 f32 "(b - d) * e" b=x1 d=x2 e=x3
sum f32 f32 "a * f" a=x0 f=x4 ; row, pass 0
sum f32 f32 "a * f * %0" a=x0 f=x4 %0=v0 ; row, pass 0
each f32 f32 "e * (a * f - %1 / # - %0 * (%2 / #))" a=x0 e=x3 f=x4 %0=v0 %1=v1 %2=v2 ; pass 1
across f32 f64 "a * %0" a=x0 %0=v0
across f32 f64 "a" a=x0
store f32 [96, 1] v3
store f64 [0, 1] v4
store f64 [0, 1] v5

LP_KERNEL(layer_norm_backward, 9, 96) {
const int length = 96, lane = threadIdx.x, part = (int)blockIdx.x;
float a4[1];
#pragma unroll
for (int j = 0; j < 1; j++) a4[j] = 0;
float a5[1];
#pragma unroll
for (int j = 0; j < 1; j++) a5[j] = 0;
const float *q4 = (const float *)LP_AT(4);
float w4[1];
{
const int i = lane * 1;
{
w4[0] = q4[i];
}
}
for (int row = part; row < 6; row += 6) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 96;
const float *q1 = (const float *)LP_AT(1) + i0 * 96;
const float *q2 = (const float *)LP_AT(2) + i0;
const float *q3 = (const float *)LP_AT(3) + i0;
const float *q4 = (const float *)LP_AT(4);
float *q5 = (float *)LP_AT(5) + i0 * 96;
double *q6 = (double *)LP_AT(6);
double *q7 = (double *)LP_AT(7);
const float x2 = q2[0];
const float x3 = q3[0];
float w0[1];
float w1[1];
{
const int i = lane * 1;
{
w0[0] = q0[i];
w1[0] = q1[i];
}
}
float a1 = 0;
float a2 = 0;
{
const int i = lane * 1;
{
{
const float x0 = w0[0];
const float x1 = w1[0];
const float x4 = w4[0];
const float v0 = ((float)(((x1) - (x2)) * (x3)));
{
const float t = (float)((x0) * (x4));
a1 = LP_ADD(a1, t);
}
{
const float t = (float)((x0) * (x4) * (v0));
a2 = LP_ADD(a2, t);
}
{
const float t = (float)((x0) * (v0));
a4[0] += t;
}
{
const float t = (float)((x0));
a5[0] += t;
}
}
}
}
__shared__ float s1[32], s2[32];
lp_leave_two_sum_f32(a1, a2, s1, s2, 3);
lp_sync(0, 96);
const float v1 = ((float)lp_found_sum_f32(s1, 3));
const float v2 = ((float)lp_found_sum_f32(s2, 3));
{
const int i = lane * 1;
{
{
const float x0 = w0[0];
const float x1 = w1[0];
const float x4 = w4[0];
const float v0 = ((float)(((x1) - (x2)) * (x3)));
const float v3 = ((float)((x3) * ((x0) * (x4) - (v1) * (1.0f / (float)length) - (v0) * ((v2) * (1.0f / (float)length)))));
q5[i] = v3;
}
}
}
__syncthreads();
}
{
const int i = lane * 1;
{
((float *)(LP_AT(8) + 0))[part * (int)96 + i] = a4[0];
}
}
{
const int i = lane * 1;
{
((float *)(LP_AT(8) + 2304))[part * (int)96 + i] = a5[0];
}
}
}
LP_KERNEL(layer_norm_backward_end, 9, 256) {
if (blockIdx.x >= 0 && blockIdx.x < 3) {
double *q6 = (double *)LP_AT(6);
double a = 0;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32;
const int i = (int)(blockIdx.x - 0) * 32 + lane;
if (i < 96)
#pragma unroll 8
for (int part = down; part < 6; part += 8) a += ((float *)(LP_AT(8) + 0))[part * (int)96 + i];
__shared__ double s4[256];
s4[threadIdx.x] = a;
__syncthreads();
for (int half = 128; half >= 32; half /= 2) {
if (threadIdx.x < half) s4[threadIdx.x] += s4[threadIdx.x + half];
__syncthreads();
}
const double v4 = ((double)s4[lane]);
if (down == 0 && i < 96) q6[i] = v4;
}
if (blockIdx.x >= 3 && blockIdx.x < 6) {
double *q7 = (double *)LP_AT(7);
double a = 0;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32;
const int i = (int)(blockIdx.x - 3) * 32 + lane;
if (i < 96)
#pragma unroll 8
for (int part = down; part < 6; part += 8) a += ((float *)(LP_AT(8) + 2304))[part * (int)96 + i];
__shared__ double s5[256];
s5[threadIdx.x] = a;
__syncthreads();
for (int half = 128; half >= 32; half /= 2) {
if (threadIdx.x < half) s5[threadIdx.x] += s5[threadIdx.x + half];
__syncthreads();
}
const double v5 = ((double)s5[lane]);
if (down == 0 && i < 96) q7[i] = v5;
}
}
