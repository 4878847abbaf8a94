loop 4096
; GPU: points, blocks 4 x 256, team 256, vector 4, chunks 0, splits 1, tensors 1
load f32 [1] align 16
load f32 [1] align 16
load f32 [0]
each f32 f32 "a * b + c" a=x0 b=x1 c=x2
each f32 f32 "a < T(0) ? T(0) : a > b ? T(b) : a" a=v0 b=6.0
store f32 [1] align 16 v0
store f32 [1] align 16 v1

LP_KERNEL(pointwise, 7, 256) {
int words = 1;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 4;
if (i < size) {
const float *q0 = (const float *)LP_AT(words + 2);
const float *q1 = (const float *)LP_AT(words + 3);
const float *q2 = (const float *)LP_AT(0);
float *q3 = (float *)LP_AT(words + 4);
float *q4 = (float *)LP_AT(words + 5);
const float x2 = q2[0];
LP_ALIGN16 float w0[4];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 float w1[4];
lp_move(&w1[0], &q1[i], 16);
LP_ALIGN16 float y3[4];
LP_ALIGN16 float y4[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
const float x1 = w1[j];
const float v0 = ((float)((x0) * (x1) + (x2)));
const float v1 = ((float)((v0) < (float)(0) ? (float)(0) : (v0) > (((float)6)) ? (float)((((float)6))) : (v0)));
y3[j] = v0;
y4[j] = v1;
}
lp_move(&q3[i], y3, 16);
lp_move(&q4[i], y4, 16);
}
}

LP_KERNEL(pointwise_of_several, 475, 256) {
int words = 1;
for (int step = 64; step; step /= 2)
if (words + step * 6 < 475 && (int64_t)LP_AT(words + step * 6 + 1) <= blockIdx.x) words += step * 6;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 4;
if (i < size) {
const float *q0 = (const float *)LP_AT(words + 2);
const float *q1 = (const float *)LP_AT(words + 3);
const float *q2 = (const float *)LP_AT(0);
float *q3 = (float *)LP_AT(words + 4);
float *q4 = (float *)LP_AT(words + 5);
const float x2 = q2[0];
LP_ALIGN16 float w0[4];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 float w1[4];
lp_move(&w1[0], &q1[i], 16);
LP_ALIGN16 float y3[4];
LP_ALIGN16 float y4[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[j];
const float x1 = w1[j];
const float v0 = ((float)((x0) * (x1) + (x2)));
const float v1 = ((float)((v0) < (float)(0) ? (float)(0) : (v0) > (((float)6)) ? (float)((((float)6))) : (v0)));
y3[j] = v0;
y4[j] = v1;
}
lp_move(&q3[i], y3, 16);
lp_move(&q4[i], y4, 16);
}
}
