loop 4 x 600 reduced 1
; GPU: rows, blocks 4 x 160, team 160, vector 4, chunks 1, splits 1
load f32 [600, 1] align 16
load f32 [0, 1] align 16
load f32 [600, 1] align 16
each f32 f32 "a * b" a=x0 b=0.5
each f32 f32 "a + b" a=v0 b=x1 ; pass 0, kept
max f32 f32 "a" a=v1 ; row, pass 0
each f32 f32 "exp(a - %0)" a=v1 %0=v2 ; pass 1, kept
sum f32 f32 "%0" %0=v3 ; row, pass 1
each f32 f32 "T(1) / %0" %0=v4 ; row, pass 2
each f32 f32 "%0 * %1" %0=v3 %1=v5 ; pass 2
each f32 f32 "a * b" a=v6 b=x2 ; pass 2
store f32 [600, 1] align 16 v7

LP_KERNEL(softmax, 4, 160) {
const int length = 600, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 4) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 600;
const float *q1 = (const float *)LP_AT(1);
const float *q2 = (const float *)LP_AT(2) + i0 * 600;
float *q3 = (float *)LP_AT(3) + i0 * 600;
float k1[4];
float k3[4];
LP_ALIGN16 float w0[4];
LP_ALIGN16 float w1[4];
{
const int i = lane * 4;
if (i < length) {
lp_move(&w0[0], &q0[i], 16);
lp_move(&w1[0], &q1[i], 16);
}
}
float a2 = -INFINITY;
{
const int i = lane * 4;
if (i < length) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
const float x1 = w1[j];
const float v0 = ((float)((x0) * (((float)0.5))));
const float v1 = ((float)((v0) + (x1)));
k1[j] = v1;
{
const float t = (float)((v1));
a2 = LP_LARGER(a2, t);
}
}
}
}
__shared__ float s2[32];
lp_leave_max_f32(a2, s2, 5);
lp_sync(0, 160);
const float v2 = ((float)lp_found_max_f32(s2, 5));
float a4 = 0;
{
const int i = lane * 4;
if (i < length) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const float v1 = k1[j];
const float v3 = ((float)(lp_exp_f32((v1) - (v2))));
k3[j] = v3;
{
const float t = (float)((v3));
a4 = LP_ADD(a4, t);
}
}
}
}
__shared__ float s4[32];
lp_leave_sum_f32(a4, s4, 5);
lp_sync(0, 160);
const float v4 = ((float)lp_found_sum_f32(s4, 5));
const float v5 = ((float)((float)(1) / (v4)));
{
const int i = lane * 4;
if (i < length) {
LP_ALIGN16 float w2[4];
lp_move(&w2[0], &q2[i], 16);
LP_ALIGN16 float y3[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x2 = w2[j];
const float v3 = k3[j];
const float v6 = ((float)((v3) * (v5)));
const float v7 = ((float)((v6) * (x2)));
y3[j] = v7;
}
lp_move(&q3[i], y3, 16);
}
}
}
}
