loop 630
; GPU: points, blocks 3 x 256, team 256, vector 1, chunks 0, splits 1, tensors 1
load i64 [0]
load i64 [0]
draw u64 [1] seed=x0 offset=x1
draw u32 [1] seed=x0 offset=x1
draw f32 [1] seed=x0 offset=x1
draw f64 [1] seed=x0 offset=x1
each i64 i64 "(int64_t)(d >> 1)" d=d2
each f32 f32 "unit(d)" d=d3
each f32 f32 "d" d=d4
each f64 f64 "d" d=d5
store i64 [1] v0
store f32 [1] v1
store f32 [1] v2
store f64 [1] v3

LP_KERNEL(draws, 12, 256) {
int words = 2;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 1;
if (i < size) {
const int64_t *q0 = (const int64_t *)LP_AT(0);
const int64_t *q1 = (const int64_t *)LP_AT(1);
const uint64_t d2 = (uint64_t)LP_AT(words + 2);
const uint32_t e2 = 0;
const uint64_t d3 = (uint64_t)LP_AT(words + 3);
const uint32_t e3 = 0;
const uint64_t d4 = (uint64_t)LP_AT(words + 4);
const uint32_t e4 = 0;
const uint64_t d5 = (uint64_t)LP_AT(words + 5);
const uint32_t e5 = 0;
int64_t *q6 = (int64_t *)LP_AT(words + 6);
float *q7 = (float *)LP_AT(words + 7);
float *q8 = (float *)LP_AT(words + 8);
double *q9 = (double *)LP_AT(words + 9);
const int64_t x0 = q0[0];
const int64_t x1 = q1[0];
uint64_t w2[1];
lp_draw_u64(x0, x1 + d2, e2 + (uint32_t)i * 1, 1, 1, 0, w2);
uint32_t w3[1];
lp_draw_u32(x0, x1 + d3, e3 + (uint32_t)i * 1, 1, 1, 0, w3);
float w4[1];
lp_draw_f32(x0, x1 + d4, e4 + (uint32_t)i * 1, 1, 1, 0, w4);
double w5[1];
lp_draw_f64(x0, x1 + d5, e5 + (uint32_t)i * 1, 1, 1, 0, w5);
{
const uint64_t x2 = w2[0];
const uint32_t x3 = w3[0];
const float x4 = w4[0];
const double x5 = w5[0];
const int64_t v0 = ((int64_t)((int64_t)((x2) >> 1)));
const float v1 = ((float)(lp_unit_f32((x3))));
const float v2 = ((float)((x4)));
const double v3 = ((double)((x5)));
q6[i] = v0;
q7[i] = v1;
q8[i] = v2;
q9[i] = v3;
}
}
}

LP_KERNEL(draws_of_several, 472, 256) {
int words = 2;
for (int step = 32; step; step /= 2)
if (words + step * 10 < 472 && (int64_t)LP_AT(words + step * 10 + 1) <= blockIdx.x) words += step * 10;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 1;
if (i < size) {
const int64_t *q0 = (const int64_t *)LP_AT(0);
const int64_t *q1 = (const int64_t *)LP_AT(1);
const uint64_t d2 = (uint64_t)LP_AT(words + 2);
const uint32_t e2 = 0;
const uint64_t d3 = (uint64_t)LP_AT(words + 3);
const uint32_t e3 = 0;
const uint64_t d4 = (uint64_t)LP_AT(words + 4);
const uint32_t e4 = 0;
const uint64_t d5 = (uint64_t)LP_AT(words + 5);
const uint32_t e5 = 0;
int64_t *q6 = (int64_t *)LP_AT(words + 6);
float *q7 = (float *)LP_AT(words + 7);
float *q8 = (float *)LP_AT(words + 8);
double *q9 = (double *)LP_AT(words + 9);
const int64_t x0 = q0[0];
const int64_t x1 = q1[0];
uint64_t w2[1];
lp_draw_u64(x0, x1 + d2, e2 + (uint32_t)i * 1, 1, 1, 0, w2);
uint32_t w3[1];
lp_draw_u32(x0, x1 + d3, e3 + (uint32_t)i * 1, 1, 1, 0, w3);
float w4[1];
lp_draw_f32(x0, x1 + d4, e4 + (uint32_t)i * 1, 1, 1, 0, w4);
double w5[1];
lp_draw_f64(x0, x1 + d5, e5 + (uint32_t)i * 1, 1, 1, 0, w5);
{
const uint64_t x2 = w2[0];
const uint32_t x3 = w3[0];
const float x4 = w4[0];
const double x5 = w5[0];
const int64_t v0 = ((int64_t)((int64_t)((x2) >> 1)));
const float v1 = ((float)(lp_unit_f32((x3))));
const float v2 = ((float)((x4)));
const double v3 = ((double)((x5)));
q6[i] = v0;
q7[i] = v1;
q8[i] = v2;
q9[i] = v3;
}
}
}
