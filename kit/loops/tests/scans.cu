loop 9 x 500 reduced 1
; GPU: rows, blocks 9 x 256, team 256, vector 1, chunks 0, splits 1
load f32 [500, 1]
load bf16 [500, 1]
running max f32 f32 "a" a=x0
each f32 i64 "a == %0 ? @ : 0" a=x0 %0=v0
running max i64 i64 "%1" %1=v1 ; pass 1
running min f32 bf16 "a" a=x1
running prod f32 f32 "a" a=x0
running log-add f32 f32 "a" a=x0
store f32 [500, 1] v0
store i64 [500, 1] v2
store bf16 [500, 1] v3
store f32 [500, 1] v4
store f32 [500, 1] v5

LP_KERNEL(scans, 7, 256) {
const int length = 500, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 9) {
const int i0 = row;
const float *q0 = (const float *)LP_AT(0) + i0 * 500;
const uint16_t *q1 = (const uint16_t *)LP_AT(1) + i0 * 500;
float *q2 = (float *)LP_AT(2) + i0 * 500;
int64_t *q3 = (int64_t *)LP_AT(3) + i0 * 500;
uint16_t *q4 = (uint16_t *)LP_AT(4) + i0 * 500;
float *q5 = (float *)LP_AT(5) + i0 * 500;
float *q6 = (float *)LP_AT(6) + i0 * 500;
__shared__ float s0[32];
float a0 = -INFINITY;
__shared__ float s3[32];
float a3 = INFINITY;
__shared__ float s4[32];
float a4 = 1;
__shared__ double s5[32];
double a5 = -INFINITY;
for (int top = 0; top < length; top += 256) {
{
const int is_in = top + lane < length;
const int i = is_in ? top + lane : length - 1;
{
const float x0 = q0[i];
const float x1 = lp_from_bf16(q1[i]);
const float t0 = is_in ? (float)((x0)) : -INFINITY;
const float v0 = ((float)lp_scan_max_f32(t0, &a0, s0, 8));
const float t3 = is_in ? (float)((x1)) : INFINITY;
const float v3 = lp_stored_bf16((float)lp_scan_min_f32(t3, &a3, s3, 8));
const float t4 = is_in ? (float)((x0)) : 1;
const float v4 = ((float)lp_scan_prod_f32(t4, &a4, s4, 8));
const double t5 = is_in ? (float)((x0)) : -INFINITY;
const float v5 = ((float)lp_scan_log_add_f64(t5, &a5, s5, 8));
if (is_in) q2[i] = v0;
if (is_in) q4[i] = lp_to_bf16(v3);
if (is_in) q5[i] = v4;
if (is_in) q6[i] = v5;
}
}
}
a0 = -INFINITY;
__shared__ int64_t s2[32];
int64_t a2 = INT64_MIN;
for (int top = 0; top < length; top += 256) {
{
const int is_in = top + lane < length;
const int i = is_in ? top + lane : length - 1;
{
const int64_t place = (uint32_t)(i);
const float x0 = q0[i];
const float t0 = is_in ? (float)((x0)) : -INFINITY;
const float v0 = ((float)lp_scan_max_f32(t0, &a0, s0, 8));
const int64_t v1 = ((int64_t)((x0) == (v0) ? place : 0));
const int64_t t2 = is_in ? (int64_t)((v1)) : INT64_MIN;
const int64_t v2 = ((int64_t)lp_scan_max_i64(t2, &a2, s2, 8));
if (is_in) q3[i] = v2;
}
}
}
}
}
