loop 768 x 4096 reduced 1 ; columns
; GPU: columns, blocks 384 x 256, team 32, vector 8, chunks 4, splits 128
load bf16 [1, 768] align 16
sum f32 f32 "a" a=x0 ; row, pass 0
each f32 bf16 "%0 * b" b=0.5 %0=v0 ; row, pass 1
store bf16 [1, 0] row v1

LP_KERNEL(bias_gradient, 3, 256) {
const int length = 4096, across = 768;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, part = blockIdx.x % 128;
const int i = (blockIdx.x / 128 % 3 * 32 + lane) * 8, outer = blockIdx.x / 384;
const uint16_t *q0 = (const uint16_t *)LP_AT(0);
uint16_t *q1 = (uint16_t *)LP_AT(1);
float a0[8];
#pragma unroll
for (int j = 0; j < 8; j++) a0[j] = 0;
if (i < across)
for (int top = part * 8 + down; top < length; top += 4096) {
LP_ALIGN16 uint16_t w0[32];
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 1024;
if (row < length) {
lp_move(&w0[c * 8], &q0[row * 768 + i], 16);
}
}
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 1024;
if (row < length) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, c * 8 + j);
{
const float t = (float)((x0));
a0[j] = LP_ADD(a0[j], t);
}
}
}
}
}
__shared__ float s0[2048];
#pragma unroll
for (int j = 0; j < 8; j++) {
s0[down * 256 + lane * 8 + j] = a0[j];
}
__syncthreads();
for (int k = threadIdx.x; k < 1024; k += 256) {
s0[k] = LP_ADD(s0[k], s0[k + 1024]);
}
__syncthreads();
for (int k = threadIdx.x; k < 512; k += 256) {
s0[k] = LP_ADD(s0[k], s0[k + 512]);
}
__syncthreads();
for (int k = threadIdx.x; k < 256; k += 256) {
s0[k] = LP_ADD(s0[k], s0[k + 256]);
}
__syncthreads();
if (down == 0 && i < across) {
#pragma unroll
for (int j = 0; j < 8; j++) {
((float *)(LP_AT(2) + 0))[part * (int)768 + outer * 768 + i + j] = s0[lane * 8 + j];
}
}
}
LP_KERNEL(bias_gradient_end, 3, 256) {
const int length = 4096;
(void)length;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, at = blockIdx.x * 32 + lane;
const int outer = at / 768, i = at % 768;
const uint16_t *q0 = (const uint16_t *)LP_AT(0);
uint16_t *q1 = (uint16_t *)LP_AT(1);
const int first = at < 768 ? (int)down : 128;
float a0[1];
#pragma unroll
for (int j = 0; j < 1; j++) a0[j] = 0;
for (int part = first; part < 128; part += 8) {
a0[0] = LP_ADD(a0[0], ((float *)(LP_AT(2) + 0))[part * (int)768 + at]);
}
__shared__ float s0[256];
{
s0[down * 32 + lane] = a0[0];
}
__syncthreads();
for (int k = threadIdx.x; k < 128; k += 256) {
s0[k] = LP_ADD(s0[k], s0[k + 128]);
}
__syncthreads();
for (int k = threadIdx.x; k < 64; k += 256) {
s0[k] = LP_ADD(s0[k], s0[k + 64]);
}
__syncthreads();
for (int k = threadIdx.x; k < 32; k += 256) {
s0[k] = LP_ADD(s0[k], s0[k + 32]);
}
__syncthreads();
if (down == 0 && at < 768) {
const float v0 = ((float)s0[lane]);
const float v1 = lp_stored_bf16((float)((v0) * (((float)0.5))));
q1[i] = lp_to_bf16(v1);
}
}
