loop 1 x 1000000 reduced 1
; GPU: rows, blocks 62 x 512, team 512, vector 4, chunks 0, splits 62
load f32 [0, 1] align 16
sum f32 f32 "a * a" a=x0 ; row, pass 0
each f32 f32 "sqrt(%0)" %0=v0 ; row, pass 1
store f32 [0, 0] row v1

LP_KERNEL(norm, 3, 512) {
const int length = 1000000, lane = threadIdx.x, row = blockIdx.x / 62, part = blockIdx.x % 62;
if (row < 1) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0);
float *q1 = (float *)LP_AT(1);
float a0 = 0;
#pragma unroll 4
for (int i = (part * 512 + lane) * 4; i < length; i += 126976) {
{
LP_ALIGN16 float w0[4];
lp_move(&w0[0], &q0[i], 16);
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
{
const float t = (float)((x0) * (x0));
a0 = LP_ADD(a0, t);
}
}
}
}
__shared__ float s0[32];
lp_leave_sum_f32(a0, s0, 16);
lp_sync(0, 512);
const float v0 = (lp_found_sum_f32(s0, 16));
if (lane == 0) ((float *)(LP_AT(2) + 0))[part * (int)1 + row] = v0;
}
}
LP_KERNEL(norm_end, 3, 256) {
const int length = 1000000;
(void)length;
const int lane = threadIdx.x, row = blockIdx.x, at = row;
const int i0 = row;
const float *q0 = (const float *)LP_AT(0);
float *q1 = (float *)LP_AT(1);
float a0 = 0;
for (int part = lane; part < 62; part += 256) {
a0 = LP_ADD(a0, ((float *)(LP_AT(2) + 0))[part * (int)1 + at]);
}
__shared__ float s0[32];
lp_leave_sum_f32(a0, s0, 8);
lp_sync(0, 256);
const float v0 = ((float)lp_found_sum_f32(s0, 8));
const float v1 = ((float)(lp_sqrt_f32((v0))));
if (lane == 0) q1[0] = v1;
}
