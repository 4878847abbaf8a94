loop 40 x 700
; GPU: points, blocks 55 x 256, team 256, vector 2, chunks 0, splits 1
load f32 [700, 1] align 16
count i64 [700, 1]
count i64 [1, 0]
count i64 [0, 1]
each f64 f32 "a + b * 0.5" a=x1 b=x2
each f32 f32 "a > b ? c : 0" a=x3 b=x2 c=x0
each i64 i64 "a - b" a=x3 b=x2
store f32 [700, 1] align 16 v0
store f32 [700, 1] align 16 v1
store i64 [700, 1] align 16 v2

LP_KERNEL(count, 7, 256) {
const int at = ((int)blockIdx.x * 256 + threadIdx.x) * 2;
if (at < 28000) {
const int row = at / 700, i = at % 700;
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 700;
const int64_t q1 = 0 + (int64_t)i0 * 700;
const int64_t q2 = 0 + (int64_t)i0;
const int64_t q3 = 0;
float *q4 = (float *)LP_AT(4) + i0 * 700;
float *q5 = (float *)LP_AT(5) + i0 * 700;
int64_t *q6 = (int64_t *)LP_AT(6) + i0 * 700;
const int64_t x2 = (q2 + 0);
LP_ALIGN16 float w0[2];
lp_move(&w0[0], &q0[i], 8);
LP_ALIGN16 float y4[2];
LP_ALIGN16 float y5[2];
LP_ALIGN16 int64_t y6[2];
#pragma unroll
for (int j = 0; j < 2; j++) {
const float x0 = w0[j];
const int64_t x1 = (q1 + (i + j));
const int64_t x3 = (q3 + (i + j));
const float v0 = ((float)(((double)x1) + ((double)x2) * 0.5));
const float v1 = ((float)(((float)x3) > ((float)x2) ? (x0) : 0));
const int64_t v2 = ((int64_t)((x3) - (x2)));
y4[j] = v0;
y5[j] = v1;
y6[j] = v2;
}
lp_move(&q4[i], y4, 8);
lp_move(&q5[i], y5, 8);
lp_move(&q6[i], y6, 16);
}
}
