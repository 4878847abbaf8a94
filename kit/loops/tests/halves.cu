loop 777
; GPU: points, blocks 1 x 256, team 256, vector 4, chunks 0, splits 1, tensors 1
load bf16 [1] align 16
load f16 [1] align 16
each f32 bf16 "a * b" a=x0 b=1.5
each f32 f32 "tanh(a) + b" a=v0 b=x1
each f32 f16 "a" a=v1
store bf16 [1] align 16 v0
store f16 [1] align 16 v2
store f32 [1] align 16 v1

LP_KERNEL(halves, 7, 256) {
int words = 0;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 4;
if (i < size) {
const int n = size - i < 4 ? (int)(size - i) : 4;
const uint16_t *q0 = (const uint16_t *)LP_AT(words + 2);
const uint16_t *q1 = (const uint16_t *)LP_AT(words + 3);
uint16_t *q2 = (uint16_t *)LP_AT(words + 4);
uint16_t *q3 = (uint16_t *)LP_AT(words + 5);
float *q4 = (float *)LP_AT(words + 6);
LP_ALIGN16 uint16_t w0[4];
{
if (n == 4) lp_move(&w0[0], &q0[i], 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) w0[j] = q0[(i + (j < n ? j : 0))];
}
LP_ALIGN16 uint16_t w1[4];
{
if (n == 4) lp_move(&w1[0], &q1[i], 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) w1[j] = q1[(i + (j < n ? j : 0))];
}
LP_ALIGN16 uint16_t y2[4];
LP_ALIGN16 uint16_t y3[4];
LP_ALIGN16 float y4[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = lp_bf16_at(w0, j);
const float x1 = lp_from_f16(w1[j]);
const float v0 = lp_round_bf16((float)((x0) * (((float)1.5))));
const float v1 = ((float)(lp_tanh_f32((v0)) + (x1)));
const float v2 = lp_stored_f16((float)((v1)));
y2[j] = lp_to_bf16(v0);
y3[j] = lp_to_f16(v2);
y4[j] = v1;
}
if (n == 4) lp_move(&q2[i], y2, 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) if (j < n) q2[i + j] = y2[j];
if (n == 4) lp_move(&q3[i], y3, 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) if (j < n) q3[i + j] = y3[j];
if (n == 4) lp_move(&q4[i], y4, 16);
else
#pragma unroll
for (int j = 0; j < 4; j++) if (j < n) q4[i + j] = y4[j];
}
}

LP_KERNEL(halves_of_several, 476, 256) {
int words = 0;
for (int step = 64; step; step /= 2)
if (words + step * 7 < 476 && (int64_t)LP_AT(words + step * 7 + 1) <= blockIdx.x) words += step * 7;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 4;
if (i < size) {
const int n = size - i < 4 ? (int)(size - i) : 4;
const uint16_t *q0 = (const uint16_t *)LP_AT(words + 2);
const uint16_t *q1 = (const uint16_t *)LP_AT(words + 3);
uint16_t *q2 = (uint16_t *)LP_AT(words + 4);
uint16_t *q3 = (uint16_t *)LP_AT(words + 5);
float *q4 = (float *)LP_AT(words + 6);
LP_ALIGN16 uint16_t w0[4];
{
if (n == 4) lp_move(&w0[0], &q0[i], 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) w0[j] = q0[(i + (j < n ? j : 0))];
}
LP_ALIGN16 uint16_t w1[4];
{
if (n == 4) lp_move(&w1[0], &q1[i], 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) w1[j] = q1[(i + (j < n ? j : 0))];
}
LP_ALIGN16 uint16_t y2[4];
LP_ALIGN16 uint16_t y3[4];
LP_ALIGN16 float y4[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = lp_bf16_at(w0, j);
const float x1 = lp_from_f16(w1[j]);
const float v0 = lp_round_bf16((float)((x0) * (((float)1.5))));
const float v1 = ((float)(lp_tanh_f32((v0)) + (x1)));
const float v2 = lp_stored_f16((float)((v1)));
y2[j] = lp_to_bf16(v0);
y3[j] = lp_to_f16(v2);
y4[j] = v1;
}
if (n == 4) lp_move(&q2[i], y2, 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) if (j < n) q2[i + j] = y2[j];
if (n == 4) lp_move(&q3[i], y3, 8);
else
#pragma unroll
for (int j = 0; j < 4; j++) if (j < n) q3[i + j] = y3[j];
if (n == 4) lp_move(&q4[i], y4, 16);
else
#pragma unroll
for (int j = 0; j < 4; j++) if (j < n) q4[i + j] = y4[j];
}
}
