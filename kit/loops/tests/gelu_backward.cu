loop 4096
; GPU: points, blocks 2 x 256, team 256, vector 8, chunks 0, splits 1, tensors 1
load bf16 [1] align 16
load bf16 [1] align 16
each f32 bf16 "a * normal(a)" a=x1
each f32 bf16 "gelu_backward(a, b)" a=x0 b=x1
store bf16 [1] align 16 v0
store bf16 [1] align 16 v1

LP_KERNEL(gelu_backward, 6, 256) {
int words = 0;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 8;
if (i < size) {
const uint16_t *q0 = (const uint16_t *)LP_AT(words + 2);
const uint16_t *q1 = (const uint16_t *)LP_AT(words + 3);
uint16_t *q2 = (uint16_t *)LP_AT(words + 4);
uint16_t *q3 = (uint16_t *)LP_AT(words + 5);
LP_ALIGN16 uint16_t w0[8];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 uint16_t w1[8];
lp_move(&w1[0], &q1[i], 16);
LP_ALIGN16 uint16_t y2[8];
LP_ALIGN16 uint16_t y3[8];
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
const float x1 = lp_bf16_at(w1, j);
const float v0 = lp_stored_bf16((float)((x1) * lp_normal_coarse_f32((x1))));
const float v1 = lp_stored_bf16((float)(lp_gelu_backward_coarse_f32((x0), (x1))));
y2[j] = lp_to_bf16(v0);
y3[j] = lp_to_bf16(v1);
}
lp_move(&q2[i], y2, 16);
lp_move(&q3[i], y3, 16);
}
}

LP_KERNEL(gelu_backward_of_several, 480, 256) {
int words = 0;
for (int step = 64; step; step /= 2)
if (words + step * 6 < 480 && (int64_t)LP_AT(words + step * 6 + 1) <= blockIdx.x) words += step * 6;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 8;
if (i < size) {
const uint16_t *q0 = (const uint16_t *)LP_AT(words + 2);
const uint16_t *q1 = (const uint16_t *)LP_AT(words + 3);
uint16_t *q2 = (uint16_t *)LP_AT(words + 4);
uint16_t *q3 = (uint16_t *)LP_AT(words + 5);
LP_ALIGN16 uint16_t w0[8];
lp_move(&w0[0], &q0[i], 16);
LP_ALIGN16 uint16_t w1[8];
lp_move(&w1[0], &q1[i], 16);
LP_ALIGN16 uint16_t y2[8];
LP_ALIGN16 uint16_t y3[8];
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
const float x1 = lp_bf16_at(w1, j);
const float v0 = lp_stored_bf16((float)((x1) * lp_normal_coarse_f32((x1))));
const float v1 = lp_stored_bf16((float)(lp_gelu_backward_coarse_f32((x0), (x1))));
y2[j] = lp_to_bf16(v0);
y3[j] = lp_to_bf16(v1);
}
lp_move(&q2[i], y2, 16);
lp_move(&q3[i], y3, 16);
}
}
