loop 64 x 40 reduced 1 ; columns
; GPU: columns, blocks 4 x 256, team 32, vector 1, chunks 4, splits 2
load f32 [1, 64] align 16
load f32 [1, 64] align 16
each f32 f32 "b <= c ? 0 : a" a=x0 b=x1 c=0
sum f32 f32 "%0" %0=v0 ; row, pass 0
store f32 [1, 64] align 16 v0
store f32 [1, 0] row v1

LP_KERNEL(columns, 5, 256) {
const int length = 40, across = 64;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, part = blockIdx.x % 2;
const int i = (blockIdx.x / 2 % 2 * 32 + lane) * 1, outer = blockIdx.x / 4;
const float *q0 = (const float *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
float *q3 = (float *)LP_AT(3);
float a1[1];
#pragma unroll
for (int j = 0; j < 1; j++) a1[j] = 0;
if (i < across)
for (int top = part * 8 + down; top < length; top += 64) {
float w0[4];
float w1[4];
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 16;
if (row < length) {
w0[c] = q0[row * 64 + i];
w1[c] = q1[row * 64 + i];
}
}
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 16;
if (row < length) {
{
const float x0 = w0[c];
const float x1 = w1[c];
const float v0 = ((float)((x1) <= (((float)0.0)) ? 0 : (x0)));
{
const float t = (float)((v0));
a1[0] = LP_ADD(a1[0], t);
}
q2[row * 64 + i] = v0;
}
}
}
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
if (down == 0 && i < across) {
{
((float *)(LP_AT(4) + 0))[part * (int)64 + outer * 64 + i] = s1[lane];
}
}
}
LP_KERNEL(columns_end, 5, 256) {
const int length = 40;
(void)length;
const int lane = threadIdx.x % 32, down = threadIdx.x / 32, at = blockIdx.x * 32 + lane;
const int outer = at / 64, i = at % 64;
const float *q0 = (const float *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
float *q3 = (float *)LP_AT(3);
const int first = at < 64 ? (int)down : 2;
float a1[1];
#pragma unroll
for (int j = 0; j < 1; j++) a1[j] = 0;
for (int part = first; part < 2; part += 8) {
a1[0] = LP_ADD(a1[0], ((float *)(LP_AT(4) + 0))[part * (int)64 + at]);
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
if (down == 0 && at < 64) {
const float v1 = ((float)s1[lane]);
q3[i] = v1;
}
}
