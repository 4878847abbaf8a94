loop 1000
; GPU: points, blocks 1 x 256, team 256, vector 4, chunks 0, splits 1, tensors 1
load f32 [1] align 16
load f32 [1] align 16
load f32 [1] align 16
load f32 [1] align 16
load f32 [0]
load f32 [0]
each f32 f32 "a * T(0.9) + b * T(0.1)" a=x2 b=x1
each f32 f32 "a * T(0.999) + b * b * T(0.001)" a=x3 b=x1
each f32 f32 "sqrt(a) / b + T(1e-8)" a=v1 b=x5
each f32 f32 "a * T(0.9999) - d * b / c" a=x0 b=v0 c=v2 d=x4
store f32 [1] align 16 v3
store f32 [1] align 16 v0
store f32 [1] align 16 v1

LP_KERNEL(adamw, 11, 256) {
int words = 2;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 4;
if (i < size) {
const float *q0 = (const float *)LP_AT(words + 2);
const float *q1 = (const float *)LP_AT(words + 3);
const float *q2 = (const float *)LP_AT(words + 4);
const float *q3 = (const float *)LP_AT(words + 5);
const float *q4 = (const float *)LP_AT(0);
const float *q5 = (const float *)LP_AT(1);
float *q6 = (float *)LP_AT(words + 6);
float *q7 = (float *)LP_AT(words + 7);
float *q8 = (float *)LP_AT(words + 8);
const float x4 = q4[0];
const float x5 = q5[0];
LP_ALIGN16 float w0[4];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 float w1[4];
lp_move(&w1[0], &q1[i], 16);
LP_ALIGN16 float w2[4];
lp_move(&w2[0], &q2[i], 16);
LP_ALIGN16 float w3[4];
lp_move(&w3[0], &q3[i], 16);
LP_ALIGN16 float y6[4];
LP_ALIGN16 float y7[4];
LP_ALIGN16 float y8[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
const float x1 = w1[j];
const float x2 = w2[j];
const float x3 = w3[j];
const float v0 = ((float)((x2) * (float)(0.9) + (x1) * (float)(0.1)));
const float v1 = ((float)((x3) * (float)(0.999) + (x1) * (x1) * (float)(0.001)));
const float v2 = ((float)(lp_sqrt_f32((v1)) / (x5) + (float)(1e-8)));
const float v3 = ((float)((x0) * (float)(0.9999) - (x4) * (v0) / (v2)));
y6[j] = v3;
y7[j] = v0;
y8[j] = v1;
}
lp_move(&q6[i], y6, 16);
lp_move(&q7[i], y7, 16);
lp_move(&q8[i], y8, 16);
}
}

LP_KERNEL(adamw_of_several, 479, 256) {
int words = 2;
for (int step = 32; step; step /= 2)
if (words + step * 9 < 479 && (int64_t)LP_AT(words + step * 9 + 1) <= blockIdx.x) words += step * 9;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 4;
if (i < size) {
const float *q0 = (const float *)LP_AT(words + 2);
const float *q1 = (const float *)LP_AT(words + 3);
const float *q2 = (const float *)LP_AT(words + 4);
const float *q3 = (const float *)LP_AT(words + 5);
const float *q4 = (const float *)LP_AT(0);
const float *q5 = (const float *)LP_AT(1);
float *q6 = (float *)LP_AT(words + 6);
float *q7 = (float *)LP_AT(words + 7);
float *q8 = (float *)LP_AT(words + 8);
const float x4 = q4[0];
const float x5 = q5[0];
LP_ALIGN16 float w0[4];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 float w1[4];
lp_move(&w1[0], &q1[i], 16);
LP_ALIGN16 float w2[4];
lp_move(&w2[0], &q2[i], 16);
LP_ALIGN16 float w3[4];
lp_move(&w3[0], &q3[i], 16);
LP_ALIGN16 float y6[4];
LP_ALIGN16 float y7[4];
LP_ALIGN16 float y8[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
const float x1 = w1[j];
const float x2 = w2[j];
const float x3 = w3[j];
const float v0 = ((float)((x2) * (float)(0.9) + (x1) * (float)(0.1)));
const float v1 = ((float)((x3) * (float)(0.999) + (x1) * (x1) * (float)(0.001)));
const float v2 = ((float)(lp_sqrt_f32((v1)) / (x5) + (float)(1e-8)));
const float v3 = ((float)((x0) * (float)(0.9999) - (x4) * (v0) / (v2)));
y6[j] = v3;
y7[j] = v0;
y8[j] = v1;
}
lp_move(&q6[i], y6, 16);
lp_move(&q7[i], y7, 16);
lp_move(&q8[i], y8, 16);
}
}
