loop 32 x 48
; GPU: points, blocks 6 x 256, team 256, vector 1, chunks 0, splits 1
load i64 [0, 0]
load i64 [0, 0]
load f32 [1, 32]
draw u32 [48, 1] seed=x0 offset=x1
each f32 f32 "unit(d)" d=d3
each f32 bool "a >= b" a=v0 b=0.10000000000000001
each f32 f32 "a * b" a=x2 b=v1
store f32 [48, 1] v2

LP_KERNEL(dropout, 5, 256) {
const int at = ((int)blockIdx.x * 256 + threadIdx.x) * 1;
if (at < 1536) {
const int row = at / 48, i = at % 48;
const int i0 = row;
const int64_t *q0 = (const int64_t *)LP_AT(0);
const int64_t *q1 = (const int64_t *)LP_AT(1);
const float *q2 = (const float *)LP_AT(2) + i0;
const uint64_t d3 = (uint64_t)LP_AT(3);
const uint32_t e3 = 0 + (uint32_t)i0 * 48;
float *q4 = (float *)LP_AT(4) + i0 * 48;
const int64_t x0 = q0[0];
const int64_t x1 = q1[0];
uint32_t w3[1];
lp_draw_u32(x0, x1 + d3, e3 + (uint32_t)i * 1, 1, 1, 0, w3);
{
const float x2 = q2[i * 32];
const uint32_t x3 = w3[0];
const float v0 = ((float)(lp_unit_f32((x3))));
const uint8_t v1 = x3 >= 429496832u;
const float v2 = ((float)((x2) * (v1 ? (float)1 : (float)0)));
q4[i] = v2;
}
}
}
