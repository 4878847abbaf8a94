loop 64 x 400 reduced 1 ; columns
; GPU: columns, blocks 13 x 256, team 16, vector 4, chunks 2, splits 13
load f64 [1, 64] align 16
load bf16 [1, 64] align 16
max f64 f64 "a" a=x0 ; row, pass 0
min f64 f64 "a" a=x0 ; row, pass 0
prod f64 f64 "a" a=x0 ; row, pass 0
sum f64 f64 "a * @" a=x0 ; row, pass 0
sum f32 f32 "b" b=x1 ; row, pass 0
store f64 [1, 0] row v0
store f64 [1, 0] row v1
store f64 [1, 0] row v2
store f64 [1, 0] row v3
store f32 [1, 0] row v4

LP_KERNEL(column_extremes, 8, 256) {
const int length = 400, across = 64;
const int lane = threadIdx.x % 16, down = threadIdx.x / 16, part = blockIdx.x % 13;
const int i = (blockIdx.x / 13 % 1 * 16 + lane) * 4, outer = blockIdx.x / 13;
const double *q0 = (const double *)LP_AT(0);
const uint16_t *q1 = (const uint16_t *)LP_AT(1);
double *q2 = (double *)LP_AT(2);
double *q3 = (double *)LP_AT(3);
double *q4 = (double *)LP_AT(4);
double *q5 = (double *)LP_AT(5);
float *q6 = (float *)LP_AT(6);
double a0[4];
#pragma unroll
for (int j = 0; j < 4; j++) a0[j] = -INFINITY;
double a1[4];
#pragma unroll
for (int j = 0; j < 4; j++) a1[j] = INFINITY;
double a2[4];
#pragma unroll
for (int j = 0; j < 4; j++) a2[j] = 1;
double a3[4];
#pragma unroll
for (int j = 0; j < 4; j++) a3[j] = 0;
float a4[4];
#pragma unroll
for (int j = 0; j < 4; j++) a4[j] = 0;
if (i < across)
for (int top = part * 16 + down; top < length; top += 416) {
LP_ALIGN16 double w0[8];
LP_ALIGN16 uint16_t w1[8];
#pragma unroll
for (int c = 0; c < 2; c++) {
const int row = top + c * 208;
if (row < length) {
lp_move(&w0[c * 4], &q0[row * 64 + i], 32);
lp_move(&w1[c * 4], &q1[row * 64 + i], 8);
}
}
#pragma unroll
for (int c = 0; c < 2; c++) {
const int row = top + c * 208;
if (row < length) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const int64_t place = (uint32_t)(row);
const double x0 = w0[c * 4 + j];
const float x1 = lp_bf16_at(w1, c * 4 + j);
{
const double t = (double)((x0));
a0[j] = LP_LARGER(a0[j], t);
}
{
const double t = (double)((x0));
a1[j] = LP_SMALLER(a1[j], t);
}
{
const double t = (double)((x0));
a2[j] = LP_TIMES(a2[j], t);
}
{
const double t = (double)((x0) * place);
a3[j] = LP_ADD(a3[j], t);
}
{
const float t = (float)((x1));
a4[j] = LP_ADD(a4[j], t);
}
}
}
}
}
__shared__ double s0[1024];
__shared__ double s1[1024];
__shared__ double s2[1024];
__shared__ double s3[1024];
__shared__ float s4[1024];
#pragma unroll
for (int j = 0; j < 4; j++) {
s0[down * 64 + lane * 4 + j] = a0[j];
s1[down * 64 + lane * 4 + j] = a1[j];
s2[down * 64 + lane * 4 + j] = a2[j];
s3[down * 64 + lane * 4 + j] = a3[j];
s4[down * 64 + lane * 4 + j] = a4[j];
}
__syncthreads();
for (int k = threadIdx.x; k < 512; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 512]);
s1[k] = LP_SMALLER(s1[k], s1[k + 512]);
s2[k] = LP_TIMES(s2[k], s2[k + 512]);
s3[k] = LP_ADD(s3[k], s3[k + 512]);
s4[k] = LP_ADD(s4[k], s4[k + 512]);
}
__syncthreads();
for (int k = threadIdx.x; k < 256; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 256]);
s1[k] = LP_SMALLER(s1[k], s1[k + 256]);
s2[k] = LP_TIMES(s2[k], s2[k + 256]);
s3[k] = LP_ADD(s3[k], s3[k + 256]);
s4[k] = LP_ADD(s4[k], s4[k + 256]);
}
__syncthreads();
for (int k = threadIdx.x; k < 128; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 128]);
s1[k] = LP_SMALLER(s1[k], s1[k + 128]);
s2[k] = LP_TIMES(s2[k], s2[k + 128]);
s3[k] = LP_ADD(s3[k], s3[k + 128]);
s4[k] = LP_ADD(s4[k], s4[k + 128]);
}
__syncthreads();
for (int k = threadIdx.x; k < 64; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 64]);
s1[k] = LP_SMALLER(s1[k], s1[k + 64]);
s2[k] = LP_TIMES(s2[k], s2[k + 64]);
s3[k] = LP_ADD(s3[k], s3[k + 64]);
s4[k] = LP_ADD(s4[k], s4[k + 64]);
}
__syncthreads();
if (down == 0 && i < across) {
#pragma unroll
for (int j = 0; j < 4; j++) {
((double *)(LP_AT(7) + 0))[part * (int)64 + outer * 64 + i + j] = s0[lane * 4 + j];
((double *)(LP_AT(7) + 6656))[part * (int)64 + outer * 64 + i + j] = s1[lane * 4 + j];
((double *)(LP_AT(7) + 13312))[part * (int)64 + outer * 64 + i + j] = s2[lane * 4 + j];
((double *)(LP_AT(7) + 19968))[part * (int)64 + outer * 64 + i + j] = s3[lane * 4 + j];
((float *)(LP_AT(7) + 26624))[part * (int)64 + outer * 64 + i + j] = s4[lane * 4 + j];
}
}
}
LP_KERNEL(column_extremes_end, 8, 256) {
const int length = 400;
(void)length;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, at = blockIdx.x * 32 + lane;
const int outer = at / 64, i = at % 64;
const double *q0 = (const double *)LP_AT(0);
const uint16_t *q1 = (const uint16_t *)LP_AT(1);
double *q2 = (double *)LP_AT(2);
double *q3 = (double *)LP_AT(3);
double *q4 = (double *)LP_AT(4);
double *q5 = (double *)LP_AT(5);
float *q6 = (float *)LP_AT(6);
const int first = at < 64 ? (int)down : 13;
double a0[1];
#pragma unroll
for (int j = 0; j < 1; j++) a0[j] = -INFINITY;
double a1[1];
#pragma unroll
for (int j = 0; j < 1; j++) a1[j] = INFINITY;
double a2[1];
#pragma unroll
for (int j = 0; j < 1; j++) a2[j] = 1;
double a3[1];
#pragma unroll
for (int j = 0; j < 1; j++) a3[j] = 0;
float a4[1];
#pragma unroll
for (int j = 0; j < 1; j++) a4[j] = 0;
for (int part = first; part < 13; part += 8) {
a0[0] = LP_LARGER(a0[0], ((double *)(LP_AT(7) + 0))[part * (int)64 + at]);
a1[0] = LP_SMALLER(a1[0], ((double *)(LP_AT(7) + 6656))[part * (int)64 + at]);
a2[0] = LP_TIMES(a2[0], ((double *)(LP_AT(7) + 13312))[part * (int)64 + at]);
a3[0] = LP_ADD(a3[0], ((double *)(LP_AT(7) + 19968))[part * (int)64 + at]);
a4[0] = LP_ADD(a4[0], ((float *)(LP_AT(7) + 26624))[part * (int)64 + at]);
}
__shared__ double s0[256];
__shared__ double s1[256];
__shared__ double s2[256];
__shared__ double s3[256];
__shared__ float s4[256];
{
s0[down * 32 + lane] = a0[0];
s1[down * 32 + lane] = a1[0];
s2[down * 32 + lane] = a2[0];
s3[down * 32 + lane] = a3[0];
s4[down * 32 + lane] = a4[0];
}
__syncthreads();
for (int k = threadIdx.x; k < 128; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 128]);
s1[k] = LP_SMALLER(s1[k], s1[k + 128]);
s2[k] = LP_TIMES(s2[k], s2[k + 128]);
s3[k] = LP_ADD(s3[k], s3[k + 128]);
s4[k] = LP_ADD(s4[k], s4[k + 128]);
}
__syncthreads();
for (int k = threadIdx.x; k < 64; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 64]);
s1[k] = LP_SMALLER(s1[k], s1[k + 64]);
s2[k] = LP_TIMES(s2[k], s2[k + 64]);
s3[k] = LP_ADD(s3[k], s3[k + 64]);
s4[k] = LP_ADD(s4[k], s4[k + 64]);
}
__syncthreads();
for (int k = threadIdx.x; k < 32; k += 256) {
s0[k] = LP_LARGER(s0[k], s0[k + 32]);
s1[k] = LP_SMALLER(s1[k], s1[k + 32]);
s2[k] = LP_TIMES(s2[k], s2[k + 32]);
s3[k] = LP_ADD(s3[k], s3[k + 32]);
s4[k] = LP_ADD(s4[k], s4[k + 32]);
}
__syncthreads();
if (down == 0 && at < 64) {
const double v0 = ((double)s0[lane]);
const double v1 = ((double)s1[lane]);
const double v2 = ((double)s2[lane]);
const double v3 = ((double)s3[lane]);
const float v4 = ((float)s4[lane]);
q2[i] = v0;
q3[i] = v1;
q4[i] = v2;
q5[i] = v3;
q6[i] = v4;
}
}
