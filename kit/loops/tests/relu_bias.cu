loop 768 x 4096 reduced 1 ; columns
; GPU: columns, blocks 264 x 256, team 32, vector 8, chunks 4, splits 88
load bf16 [1, 768] align 16
load bf16 [1, 768] align 16
each f32 bf16 "b <= c ? 0 : a" a=x0 b=x1 c=0
sum f32 f32 "a" a=v0 ; row, pass 0
store bf16 [1, 768] align 16 v0
store f64 [1, 0] row v1

LP_KERNEL(relu_bias, 5, 256) {
const int length = 4096, across = 768;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, part = blockIdx.x % 88;
const int i = (blockIdx.x / 88 % 3 * 32 + lane) * 8, outer = blockIdx.x / 264;
const uint16_t *q0 = (const uint16_t *)LP_AT(0);
const uint16_t *q1 = (const uint16_t *)LP_AT(1);
uint16_t *q2 = (uint16_t *)LP_AT(2);
double *q3 = (double *)LP_AT(3);
float a1[8];
#pragma unroll
for (int j = 0; j < 8; j++) a1[j] = 0;
if (i < across)
for (int top = part * 8 + down; top < length; top += 2816) {
LP_ALIGN16 uint16_t w0[32];
LP_ALIGN16 uint16_t w1[32];
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 704;
if (row < length) {
lp_move(&w0[c * 8], &q0[row * 768 + i], 16);
lp_move(&w1[c * 8], &q1[row * 768 + i], 16);
}
}
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 704;
if (row < length) {
LP_ALIGN16 uint16_t y2[8];
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, c * 8 + j);
const float x1 = lp_bf16_at(w1, c * 8 + j);
const float v0 = lp_round_bf16((float)((x1) <= (((float)0.0)) ? 0 : (x0)));
{
const float t = (float)((v0));
a1[j] = LP_ADD(a1[j], t);
}
y2[j] = lp_to_bf16(v0);
}
lp_move(&q2[row * 768 + i], y2, 16);
}
}
}
__shared__ float s1[2048];
#pragma unroll
for (int j = 0; j < 8; j++) {
s1[down * 256 + lane * 8 + j] = a1[j];
}
__syncthreads();
for (int k = threadIdx.x; k < 1024; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 1024]);
}
__syncthreads();
for (int k = threadIdx.x; k < 512; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 512]);
}
__syncthreads();
for (int k = threadIdx.x; k < 256; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 256]);
}
__syncthreads();
if (down == 0 && i < across) {
#pragma unroll
for (int j = 0; j < 8; j++) {
((float *)(LP_AT(4) + 0))[part * (int)768 + outer * 768 + i + j] = s1[lane * 8 + j];
}
}
}
LP_KERNEL(relu_bias_end, 5, 256) {
const int length = 4096;
(void)length;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, at = blockIdx.x * 32 + lane;
const int outer = at / 768, i = at % 768;
const uint16_t *q0 = (const uint16_t *)LP_AT(0);
const uint16_t *q1 = (const uint16_t *)LP_AT(1);
uint16_t *q2 = (uint16_t *)LP_AT(2);
double *q3 = (double *)LP_AT(3);
const int first = at < 768 ? (int)down : 88;
float a1[1];
#pragma unroll
for (int j = 0; j < 1; j++) a1[j] = 0;
for (int part = first; part < 88; part += 8) {
a1[0] = LP_ADD(a1[0], ((float *)(LP_AT(4) + 0))[part * (int)768 + at]);
}
__shared__ float s1[256];
{
s1[down * 32 + lane] = a1[0];
}
__syncthreads();
for (int k = threadIdx.x; k < 128; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 128]);
}
__syncthreads();
for (int k = threadIdx.x; k < 64; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 64]);
}
__syncthreads();
for (int k = threadIdx.x; k < 32; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 32]);
}
__syncthreads();
if (down == 0 && at < 768) {
const float v1 = ((float)s1[lane]);
q3[i] = (double)v1;
}
}
