loop 5003
; GPU: points, blocks 2 x 256, team 256, vector 16, chunks 0, splits 1, tensors 1
load i64 [0]
load i64 [0]
draw u32 [1] seed=x0 offset=x1
each f32 f32 "unit(d)" d=d2
each f32 bool "a < b" a=v0 b=0.90000000000000002
each f32 bf16 "a" a=v1
each f32 bool "a >= b" a=v0 b=0.29999999999999999
each f32 bf16 "a" a=v3
each f32 bool "a < b" a=v0 b=0.0
store bf16 [1] align 16 v2
store bf16 [1] align 16 v4
store bool [1] align 16 v5

LP_KERNEL(dropout_mask, 8, 256) {
int words = 2;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 16;
if (i < size) {
const int n = size - i < 16 ? (int)(size - i) : 16;
const int64_t *q0 = (const int64_t *)LP_AT(0);
const int64_t *q1 = (const int64_t *)LP_AT(1);
const uint64_t d2 = (uint64_t)LP_AT(words + 2);
const uint32_t e2 = 0;
uint16_t *q3 = (uint16_t *)LP_AT(words + 3);
uint16_t *q4 = (uint16_t *)LP_AT(words + 4);
uint8_t *q5 = (uint8_t *)LP_AT(words + 5);
const int64_t x0 = q0[0];
const int64_t x1 = q1[0];
uint32_t w2[16];
lp_draw_u32(x0, x1 + d2, e2 + (uint32_t)i * 1, 1, 16, 1, w2);
LP_ALIGN16 uint16_t y3[16];
LP_ALIGN16 uint16_t y4[16];
LP_ALIGN16 uint8_t y5[16];
#pragma unroll
for (int j = 0; j < 16; j++) {
const uint32_t x2 = w2[j];
const float v0 = ((float)(lp_unit_f32((x2))));
const uint8_t v1 = x2 < 3865470464u;
const float v2 = lp_stored_bf16((float)((v1 ? (float)1 : (float)0)));
const uint8_t v3 = x2 >= 1288490240u;
const float v4 = lp_stored_bf16((float)((v3 ? (float)1 : (float)0)));
const uint8_t v5 = ((uint8_t)((v0) < (((float)0.0))) != 0);
y3[j] = lp_to_bf16(v2);
y4[j] = lp_to_bf16(v4);
y5[j] = v5;
}
if (n == 16) lp_move(&q3[i], y3, 32);
else
#pragma unroll
for (int j = 0; j < 16; j++) if (j < n) q3[i + j] = y3[j];
if (n == 16) lp_move(&q4[i], y4, 32);
else
#pragma unroll
for (int j = 0; j < 16; j++) if (j < n) q4[i + j] = y4[j];
if (n == 16) lp_move(&q5[i], y5, 16);
else
#pragma unroll
for (int j = 0; j < 16; j++) if (j < n) q5[i + j] = y5[j];
}
}

LP_KERNEL(dropout_mask_of_several, 476, 256) {
int words = 2;
for (int step = 64; step; step /= 2)
if (words + step * 6 < 476 && (int64_t)LP_AT(words + step * 6 + 1) <= blockIdx.x) words += step * 6;
const int size = (int)(int64_t)LP_AT(words + 0);
const int block = (int)(blockIdx.x - (int64_t)LP_AT(words + 1));
const int i = (block * 256 + threadIdx.x) * 16;
if (i < size) {
const int n = size - i < 16 ? (int)(size - i) : 16;
const int64_t *q0 = (const int64_t *)LP_AT(0);
const int64_t *q1 = (const int64_t *)LP_AT(1);
const uint64_t d2 = (uint64_t)LP_AT(words + 2);
const uint32_t e2 = 0;
uint16_t *q3 = (uint16_t *)LP_AT(words + 3);
uint16_t *q4 = (uint16_t *)LP_AT(words + 4);
uint8_t *q5 = (uint8_t *)LP_AT(words + 5);
const int64_t x0 = q0[0];
const int64_t x1 = q1[0];
uint32_t w2[16];
lp_draw_u32(x0, x1 + d2, e2 + (uint32_t)i * 1, 1, 16, 1, w2);
LP_ALIGN16 uint16_t y3[16];
LP_ALIGN16 uint16_t y4[16];
LP_ALIGN16 uint8_t y5[16];
#pragma unroll
for (int j = 0; j < 16; j++) {
const uint32_t x2 = w2[j];
const float v0 = ((float)(lp_unit_f32((x2))));
const uint8_t v1 = x2 < 3865470464u;
const float v2 = lp_stored_bf16((float)((v1 ? (float)1 : (float)0)));
const uint8_t v3 = x2 >= 1288490240u;
const float v4 = lp_stored_bf16((float)((v3 ? (float)1 : (float)0)));
const uint8_t v5 = ((uint8_t)((v0) < (((float)0.0))) != 0);
y3[j] = lp_to_bf16(v2);
y4[j] = lp_to_bf16(v4);
y5[j] = v5;
}
if (n == 16) lp_move(&q3[i], y3, 32);
else
#pragma unroll
for (int j = 0; j < 16; j++) if (j < n) q3[i + j] = y3[j];
if (n == 16) lp_move(&q4[i], y4, 32);
else
#pragma unroll
for (int j = 0; j < 16; j++) if (j < n) q4[i + j] = y4[j];
if (n == 16) lp_move(&q5[i], y5, 16);
else
#pragma unroll
for (int j = 0; j < 16; j++) if (j < n) q5[i + j] = y5[j];
}
}
