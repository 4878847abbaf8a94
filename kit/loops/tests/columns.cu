loop 64 x 40 reduced 1 ; columns
; GPU: columns, blocks 1 x 256, team 16, vector 4, chunks 4, splits 1
load f32 [1, 64] align 16
load f32 [1, 64] align 16
each f32 f32 "b <= c ? 0 : a" a=x0 b=x1 c=0
sum f32 f32 "%0" %0=v0 ; row, pass 0
store f32 [1, 64] align 16 v0
store f32 [1, 0] row v1

LP_KERNEL(columns, 4, 256) {
const int length = 40, across = 64;
const int lane = threadIdx.x % 16, down = threadIdx.x / 16, part = blockIdx.x % 1;
const int i = (blockIdx.x / 1 % 1 * 16 + lane) * 4, outer = blockIdx.x / 1;
const float *q0 = (const float *)LP_AT(0);
const float *q1 = (const float *)LP_AT(1);
float *q2 = (float *)LP_AT(2);
float *q3 = (float *)LP_AT(3);
float a1[4];
#pragma unroll
for (int j = 0; j < 4; j++) a1[j] = 0;
if (i < across)
for (int top = part * 16 + down; top < length; top += 64) {
LP_ALIGN16 float w0[16];
LP_ALIGN16 float w1[16];
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 16;
if (row < length) {
lp_move(&w0[c * 4], &q0[row * 64 + i], 16);
lp_move(&w1[c * 4], &q1[row * 64 + i], 16);
}
}
#pragma unroll
for (int c = 0; c < 4; c++) {
const int row = top + c * 16;
if (row < length) {
LP_ALIGN16 float y2[4];
#pragma unroll
for (int j = 0; j < 4; j++) {
const float x0 = w0[c * 4 + j];
const float x1 = w1[c * 4 + j];
const float v0 = ((float)((x1) <= (((float)0.0)) ? 0 : (x0)));
{
const float t = (float)((v0));
a1[j] = LP_ADD(a1[j], t);
}
y2[j] = v0;
}
lp_move(&q2[row * 64 + i], y2, 16);
}
}
}
__shared__ float s1[1024];
#pragma unroll
for (int j = 0; j < 4; j++) {
s1[down * 64 + lane * 4 + j] = a1[j];
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
for (int k = threadIdx.x; k < 128; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 128]);
}
__syncthreads();
for (int k = threadIdx.x; k < 64; k += 256) {
s1[k] = LP_ADD(s1[k], s1[k + 64]);
}
__syncthreads();
if (down == 0 && i < across) {
#pragma unroll
for (int j = 0; j < 4; j++) {
const float v1 = ((float)s1[lane * 4 + j]);
q3[(i + j)] = v1;
}
}
}
