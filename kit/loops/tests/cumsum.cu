loop 40 x 700 reduced 1
; GPU: rows, blocks 40 x 256, team 256, vector 1, chunks 0, splits 1
load f32 [700, 1] align 16
each f32 f32 "exp(a)" a=x0
running sum f32 f32 "a" a=v0 ; pass 1
sum f32 f32 "a" a=v0 ; row, pass 0
each f32 f32 "a / b" a=v1 b=v2 ; pass 1
each f32 f32 "log(a)" a=v3 ; pass 2
store f32 [700, 1] align 16 v4

LP_KERNEL(cumsum, 2, 256) {
const int length = 700, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 40) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 700;
float *q1 = (float *)LP_AT(1) + i0 * 700;
float a2 = 0;
#pragma unroll 4
for (int i = lane * 1; i < length; i += 256) {
{
{
const float x0 = q0[i];
const float v0 = ((float)(lp_exp_f32((x0))));
{
const float t = (float)((v0));
a2 = LP_ADD(a2, t);
}
}
}
}
__shared__ float s2[32];
lp_leave_sum_f32(a2, s2, 8);
lp_sync(0, 256);
const float v2 = ((float)lp_found_sum_f32(s2, 8));
#pragma unroll 4
for (int i = lane * 1; i < length; i += 256) {
{
{
}
}
}
__shared__ float s1[32];
float a1 = 0;
for (int top = 0; top < length; top += 256) {
{
const int is_in = top + lane < length;
const int i = is_in ? top + lane : length - 1;
{
const float x0 = q0[i];
const float v0 = ((float)(lp_exp_f32((x0))));
const float t1 = is_in ? (float)((v0)) : 0;
const float v1 = ((float)lp_scan_sum_f32(t1, &a1, s1, 8));
const float v3 = ((float)((v1) / (v2)));
const float v4 = ((float)(lp_log_f32((v3))));
if (is_in) q1[i] = v4;
}
}
}
}
}
