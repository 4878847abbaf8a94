loop 6 x 10
; GPU: points, blocks 1 x 256, team 256, vector 1, chunks 0, splits 1
load f32 [5, 1] in 0: 1..5, 1: 3..8 else 0.0
load f32 [10, 1] in 0: -1..5 else -1
load f32 [4, 1] in 1: 0..4 else x1
each f32 f32 "a + b" a=x0 b=x2
store f32 [10, 1] v0

LP_KERNEL(bounds, 4, 256) {
const int b0_0 = 1, e0_0 = 5;
const int b0_1 = 3, e0_1 = 8;
const int b1_0 = -1, e1_0 = 5;
const int b2_1 = 0, e2_1 = 4;
const int at = ((int)blockIdx.x * 256 + threadIdx.x) * 1;
if (at < 60) {
const int row = at / 10, i = at % 10;
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + (i0 - b0_0) * 5;
const int in0 = i0 >= b0_0 && i0 < e0_0;
const float *q1 = (const float *)LP_AT(1) + (i0 - b1_0) * 10;
const int in1 = i0 >= b1_0 && i0 < e1_0;
const float *q2 = (const float *)LP_AT(2) + i0 * 4;
float *q3 = (float *)LP_AT(3) + i0 * 10;
{
const float x0 = in0 && i >= b0_1 && i < e0_1 ? q0[(i - b0_1)] : ((float)0.0);
const float x1 = in1 ? q1[i] : ((float)-1);
const float x2 = i >= b2_1 && i < e2_1 ? q2[(i - b2_1)] : x1;
const float v0 = ((float)((x0) + (x2)));
q3[i] = v0;
}
}
}
