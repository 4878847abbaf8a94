loop 5 x 600 reduced 1 ; columns
; GPU: places, blocks 1 x 64, team 1, vector 1, chunks 0, splits 1
load i32 [600, 1]
load f32 [600, 1]
each f32 f32 "a * b" a=x1 b=0.5
store f32 [7, 0] at x0 * 1 of 7 wraps add v0

LP_KERNEL(scatter_row, 4, 64) {
int64_t wrong = 0;
const int length = 600, across = 5, at = (int)blockIdx.x * 64 + threadIdx.x;
if (at < 5) {
const int outer = at / across, i = at % across;
const int32_t *q0 = (const int32_t *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
for (int row = 0; row < length; row++) {
{
const int32_t x0 = q0[row + i * 600];
const float x1 = q1[row + i * 600];
const float v0 = ((float)((x1) * (((float)0.5))));
const int64_t j2 = lp_place(lp_wrap(x0, 7), 7, &wrong) * 1;
q2[j2 + i * 7] += v0;
}
}
if (wrong) *(int64_t *)LP_AT(3) = wrong;
}
}
