loop 6 x 96 reduced 1
; GPU: rows, blocks 2 x 128, team 32, vector 8, chunks 1, splits 1
load bf16 [96, 1] align 16
load f32 [0, 1] align 16
sum f32 f32 "a" a=x0 ; row, pass 0
each f32 f32 "%0 / #" %0=v0 ; row, pass 1
sum f32 f32 "(a - %0) * (a - %0)" a=x0 %0=v1 ; row, pass 1
each f32 f32 "T(1) / sqrt(%0 / # + b)" b=1.0000000000000001e-05 %0=v2 ; row, pass 2
each f32 f32 "%0" %0=v1 ; row, pass 1
each f32 f32 "(a - %0) * %1" a=x0 %0=v4 %1=v3 ; pass 2
each f32 bf16 "%0 * b" b=x1 %0=v5 ; pass 2
store bf16 [96, 1] align 16 v6
store f32 [1, 0] row v4
store f32 [1, 0] row v3

LP_KERNEL(layer_norm, 5, 128) {
const int length = 96, lane = threadIdx.x % 32, row = (int)blockIdx.x * 4 + threadIdx.x / 32;
if (row < 6) {
const int i0 = row;
const uint16_t *q0 = (const uint16_t *)LP_AT(0) + i0 * 96;
const float *q1 = (const float *)LP_AT(1);
uint16_t *q2 = (uint16_t *)LP_AT(2) + i0 * 96;
float *q3 = (float *)LP_AT(3) + i0;
float *q4 = (float *)LP_AT(4) + i0;
LP_ALIGN16 uint16_t w0[8];
{
const int i = lane * 8;
if (i < length) {
lp_move(&w0[0], &q0[i], 16);
}
}
float a0 = 0;
{
const int i = lane * 8;
if (i < length) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
{
const float t = (float)((x0));
a0 = LP_ADD(a0, t);
}
}
}
}
a0 = lp_warp_sum_f32(a0);
const float v0 = ((float)a0);
const float v1 = ((float)((v0) * (1.0f / (float)length)));
const float v4 = ((float)((v1)));
float a2 = 0;
{
const int i = lane * 8;
if (i < length) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
{
const float t = (float)(((x0) - (v1)) * ((x0) - (v1)));
a2 = LP_ADD(a2, t);
}
}
}
}
a2 = lp_warp_sum_f32(a2);
const float v2 = ((float)a2);
const float v3 = ((float)((float)(1) / lp_sqrt_f32((v2) * (1.0f / (float)length) + (((float)1.0000000000000001e-05)))));
{
const int i = lane * 8;
if (i < length) {
LP_ALIGN16 float w1[8];
lp_move(&w1[0], &q1[i], 32);
LP_ALIGN16 uint16_t y2[8];
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
const float x1 = w1[j];
const float v5 = ((float)(((x0) - (v4)) * (v3)));
const float v6 = lp_stored_bf16((float)((v5) * (x1)));
y2[j] = lp_to_bf16(v6);
}
lp_move(&q2[i], y2, 16);
}
}
if (lane == 0) q3[0] = v4;
if (lane == 0) q4[0] = v3;
}
}
