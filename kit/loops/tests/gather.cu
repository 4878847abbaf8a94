loop 5 x 600 reduced 1
; GPU: rows, blocks 5 x 608, team 608, vector 1, chunks 1, splits 1
load i64 [600, 1]
load i32 [0, 1]
load f32 [0, 0] at x0 * 3 of 7 wraps, x1 * 1 of 3
load f32 [600, 1]
each f32 f32 "a * b" a=x2 b=x3
sum f32 f32 "a" a=v0 ; row, pass 0
store f32 [600, 1] v0
store f32 [1, 0] row v1

LP_KERNEL(gather, 7, 608) {
int64_t wrong = 0;
const int length = 600, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 5) {
const int i0 = row;
const int64_t *q0 = (const int64_t *)LP_AT(0) + i0 * 600;
const int32_t *q1 = (const int32_t *)LP_AT(1);
const float *q2 = (const float *)LP_AT(2);
const float *q3 = (const float *)LP_AT(3) + i0 * 600;
float *q4 = (float *)LP_AT(4) + i0 * 600;
float *q5 = (float *)LP_AT(5) + i0;
int64_t w0[1];
int32_t w1[1];
float w3[1];
{
const int i = lane * 1;
if (i < length) {
w0[0] = q0[i];
w1[0] = q1[i];
w3[0] = q3[i];
}
}
float a1 = 0;
{
const int i = lane * 1;
if (i < length) {
{
const int64_t x0 = w0[0];
const int32_t x1 = w1[0];
const int64_t j2 = lp_place(lp_wrap(x0, 7), 7, &wrong) * 3 + lp_place(x1, 3, &wrong) * 1;
const float x2 = q2[j2];
const float x3 = w3[0];
const float v0 = ((float)((x2) * (x3)));
{
const float t = (float)((v0));
a1 = LP_ADD(a1, t);
}
q4[i] = v0;
}
}
}
__shared__ float s1[32];
lp_leave_sum_f32(a1, s1, 19);
lp_sync(0, 608);
const float v1 = ((float)lp_found_sum_f32(s1, 19));
if (lane == 0) q5[0] = v1;
if (wrong) *(int64_t *)LP_AT(6) = wrong;
}
}
