loop 37 x 400 reduced 1
; GPU: rows, blocks 37 x 256, team 256, vector 1, chunks 0, splits 1
load f32 [1, 37]
running sum f32 f32 "a" a=x0
store f32 [1, 37] v0

LP_KERNEL(column_scan, 2, 256) {
const int length = 400, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 37) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0;
float *q1 = (float *)LP_AT(1) + i0;
__shared__ float s0[32];
float a0 = 0;
for (int top = 0; top < length; top += 256) {
{
const int is_in = top + lane < length;
const int i = is_in ? top + lane : length - 1;
{
const float x0 = q0[i * 37];
const float t0 = is_in ? (float)((x0)) : 0;
const float v0 = ((float)lp_scan_sum_f32(t0, &a0, s0, 8));
if (is_in) q1[i * 37] = v0;
}
}
}
}
}
