loop 7 x 5 x 24
; GPU: points, blocks 2 x 256, team 256, vector 2, chunks 0, splits 1
load f64 [120, 24, 1] align 16
load f32 [24, 0, 1] align 16
load f64 [0, 1, 0]
each f32 f64 "a" a=x1
each f64 f64 "a * exp(b) - c" a=x0 b=v0 c=x2
each f64 f32 "a" a=v1
store f64 [120, 24, 1] align 16 v1
store f32 [120, 24, 1] align 16 v2

LP_KERNEL(doubles, 5, 256) {
const int at = ((int)blockIdx.x * 256 + threadIdx.x) * 2;
if (at < 840) {
const int row = at / 24, i = at % 24;
const int i1 = row % 5;
const int i0 = row / 5;
const double *q0 = (const double *)LP_AT(0) + i0 * 120 + i1 * 24;
const float *q1 = (const float *)LP_AT(1) + i0 * 24;
const double *q2 = (const double *)LP_AT(2) + i1;
double *q3 = (double *)LP_AT(3) + i0 * 120 + i1 * 24;
float *q4 = (float *)LP_AT(4) + i0 * 120 + i1 * 24;
const double x2 = q2[0];
LP_ALIGN16 double w0[2];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 float w1[2];
lp_move(&w1[0], &q1[i], 8);
LP_ALIGN16 double y3[2];
LP_ALIGN16 float y4[2];
#pragma unroll
for (int j = 0; j < 2; j++) {
const double x0 = w0[j];
const float x1 = w1[j];
const double v0 = ((double)((x1)));
const double v1 = ((double)((x0) * lp_exp_f64((v0)) - (x2)));
const float v2 = ((float)((v1)));
y3[j] = v1;
y4[j] = v2;
}
lp_move(&q3[i], y3, 16);
lp_move(&q4[i], y4, 8);
}
}
