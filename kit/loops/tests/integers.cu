loop 6 x 9 x 10
; GPU: points, blocks 3 x 256, team 256, vector 1, chunks 0, splits 1
load i64 [1, 6, 54]
load i32 [0, 10, 1]
load u8 [90, 10, 1]
load i8 [90, 10, 1]
load i16 [0, 0, 1]
each i64 i64 "a + b" a=x0 b=x1
each i64 i32 "a * b" a=v0 b=3
each i64 i16 "a - b" a=x4 b=x3
each i64 i8 "a >> b" a=x3 b=1
each i64 bool "a < b" a=x0 b=x2
each i64 bool "(a != 0) && (b != 0)" a=v4 b=x2
each i64 u8 "a & b" a=x2 b=x1
store i64 [90, 10, 1] v0
store i32 [90, 10, 1] v1
store i16 [90, 10, 1] v2
store i8 [90, 10, 1] v3
store bool [90, 10, 1] v5
store u8 [90, 10, 1] v6

LP_KERNEL(integers, 11, 256) {
const int at = ((int)blockIdx.x * 256 + threadIdx.x) * 1;
if (at < 540) {
const int row = at / 10, i = at % 10;
const int i1 = row % 9;
const int i0 = row / 9;
const int64_t *q0 = (const int64_t *)LP_AT(0) + i0 + i1 * 6;
const int32_t *q1 = (const int32_t *)LP_AT(1) + i1 * 10;
const uint8_t *q2 = (const uint8_t *)LP_AT(2) + i0 * 90 + i1 * 10;
const int8_t *q3 = (const int8_t *)LP_AT(3) + i0 * 90 + i1 * 10;
const int16_t *q4 = (const int16_t *)LP_AT(4);
int64_t *q5 = (int64_t *)LP_AT(5) + i0 * 90 + i1 * 10;
int32_t *q6 = (int32_t *)LP_AT(6) + i0 * 90 + i1 * 10;
int16_t *q7 = (int16_t *)LP_AT(7) + i0 * 90 + i1 * 10;
int8_t *q8 = (int8_t *)LP_AT(8) + i0 * 90 + i1 * 10;
uint8_t *q9 = (uint8_t *)LP_AT(9) + i0 * 90 + i1 * 10;
uint8_t *q10 = (uint8_t *)LP_AT(10) + i0 * 90 + i1 * 10;
{
const int64_t x0 = q0[i * 54];
const int32_t x1 = q1[i];
const uint8_t x2 = q2[i];
const int8_t x3 = q3[i];
const int16_t x4 = q4[i];
const int64_t v0 = ((int64_t)((x0) + ((int64_t)x1)));
const int32_t v1 = ((int32_t)((v0) * (INT64_C(3))));
const int16_t v2 = ((int16_t)(((int64_t)x4) - ((int64_t)x3)));
const int8_t v3 = ((int8_t)(((int64_t)x3) >> (INT64_C(1))));
const uint8_t v4 = ((uint8_t)((x0) < ((int64_t)x2)) != 0);
const uint8_t v5 = ((uint8_t)(((v4 ? (int64_t)1 : (int64_t)0) != 0) && (((int64_t)x2) != 0)) != 0);
const uint8_t v6 = ((uint8_t)(((int64_t)x2) & ((int64_t)x1)));
q5[i] = v0;
q6[i] = v1;
q7[i] = v2;
q8[i] = v3;
q9[i] = v5;
q10[i] = v6;
}
}
}
