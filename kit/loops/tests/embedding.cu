loop 6 x 700
; GPU: points, blocks 17 x 256, team 256, vector 1, chunks 0, splits 1
load i64 [1, 0]
load f32 [0, 1] at x0 * 700 of 11
load f32 [700, 1]
each f32 f32 "a + b" a=x1 b=x2
each f32 bf16 "a" a=v0
store bf16 [700, 1] v1

LP_KERNEL(embedding, 5, 256) {
int64_t wrong = 0;
const int at = ((int)blockIdx.x * 256 + threadIdx.x) * 1;
if (at < 4200) {
const int row = at / 700, i = at % 700;
const int i0 = row;
const int64_t *q0 = (const int64_t *)LP_AT(0) + i0;
const float *q1 = (const float *)LP_AT(1);
const float *q2 = (const float *)LP_AT(2) + i0 * 700;
uint16_t *q3 = (uint16_t *)LP_AT(3) + i0 * 700;
const int64_t x0 = q0[0];
const int64_t j1 = lp_place(x0, 11, &wrong) * 700;
{
const float x1 = q1[j1 + i];
const float x2 = q2[i];
const float v0 = ((float)((x1) + (x2)));
const float v1 = lp_stored_bf16((float)((v0)));
q3[i] = lp_to_bf16(v1);
}
if (wrong) *(int64_t *)LP_AT(4) = wrong;
}
}
