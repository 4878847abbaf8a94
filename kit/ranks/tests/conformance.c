#include "conformance.h"

#include "kit/ranks/reduce.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define N 1000u /* elements a rank: no multiple of 3 */

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) return #condition;                                                                               \
  } while (0)

static aot_status_t collect(const aot_communicator_t *c, aot_group_t *g, aot_collective_t what, void *to,
                            uint64_t to_nbytes, void *from, uint64_t from_nbytes) {
  what.struct_size = sizeof what;
  what.to = (aot_buffer_t){(uintptr_t)to, to_nbytes};
  what.from = (aot_buffer_t){(uintptr_t)from, from_nbytes};
  what.what = aot_str("conformance");
  return c->collect(c, NULL, g, &what);
}

/* A number of which sums in another order have other bits. */
static float number(uint32_t rank, uint32_t i) {
  return (float)(1.0 / (1.0 + rank * 7 + i % 13) * (i % 2 ? 1e6 : 1e-3));
}

static float sum_by_rank(uint32_t n_ranks, uint32_t i) {
  float sum = number(0, i);
  for (uint32_t r = 1; r < n_ranks; r++) sum += number(r, i);
  return sum;
}

static const char *gathers(const aot_communicator_t *c, aot_group_t *g, uint32_t rank, uint32_t n, float *a, float *b) {
  for (uint32_t i = 0; i < N; i++) a[i] = number(rank, i);
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_GATHER}, b, n * N * 4, a, N * 4) == AOT_OK);
  for (uint32_t r = 0; r < n; r++)
    for (uint32_t i = 0; i < N; i++) CHECK(b[r * N + i] == number(r, i));
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_GATHER}, b, 0, a, 0) == AOT_OK);
  const aot_collective_t broadcast = {.kind = AOT_COLLECTIVE_BROADCAST, .root = n - 1};
  CHECK(collect(c, g, broadcast, b, N * 4, a, N * 4) == AOT_OK);
  for (uint32_t i = 0; i < N; i++) CHECK(b[i] == number(n - 1, i));
  return NULL;
}

static const char *reductions(const aot_communicator_t *c, aot_group_t *g, uint32_t rank, uint32_t n, float *a,
                              float *b) {
  aot_collective_t sum = {.kind = AOT_COLLECTIVE_REDUCE_SCATTER, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32};
  for (uint32_t i = 0; i < n * N; i++) a[i] = number(rank, i);
  CHECK(collect(c, g, sum, b, N * 4, a, n * N * 4) == AOT_OK);
  for (uint32_t i = 0; i < N; i++) CHECK(b[i] == sum_by_rank(n, rank * N + i));
  sum.kind = AOT_COLLECTIVE_ALL_REDUCE;
  CHECK(collect(c, g, sum, b, N * 4, a, N * 4) == AOT_OK);
  for (uint32_t i = 0; i < N; i++) CHECK(b[i] == sum_by_rank(n, i));
  CHECK(collect(c, g, sum, b, 4, a, 4) == AOT_OK); /* fewer elements than ranks */
  CHECK(b[0] == sum_by_rank(n, 0));
  CHECK(collect(c, g, sum, a, N * 4, a, N * 4) == AOT_OK); /* in place */
  for (uint32_t i = 0; i < N; i++) CHECK(a[i] == sum_by_rank(n, i));
  double most = rank == n / 2 ? 5 : -1, least = most, mean = rank, out = 0;
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_MAX, .dtype = AOT_F64},
                &out, 8, &most, 8) == AOT_OK);
  CHECK(out == 5);
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_MIN, .dtype = AOT_F64},
                &out, 8, &least, 8) == AOT_OK);
  CHECK(out == (n == 1 ? 5 : -1));
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_AVG, .dtype = AOT_F64},
                &out, 8, &mean, 8) == AOT_OK);
  CHECK(out == (n - 1) / 2.0);
  int64_t count = rank + 1, product = 0, expected = 1;
  CHECK(collect(c, g,
                (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_PRODUCT, .dtype = AOT_I64},
                &product, 8, &count, 8) == AOT_OK);
  for (uint32_t r = 0; r < n; r++) expected *= r + 1;
  CHECK(product == expected);
  return NULL;
}

static const char *exchanges(const aot_communicator_t *c, aot_group_t *g, uint32_t rank, uint32_t n, float *a,
                             float *b) {
  uint64_t send[64], receive[64], at = 0;
  for (uint32_t i = 0; i < n * N; i++) a[i] = (float)(rank * 1000 + i);
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_TO_ALL}, b, n * 4, a, n * 4) == AOT_OK);
  for (uint32_t r = 0; r < n; r++) CHECK(b[r] == (float)(r * 1000 + rank));
  for (uint32_t r = 0; r < n; r++) { /* rank i gives rank k k+1 elements */
    send[r] = (r + 1) * 4;
    receive[r] = (rank + 1) * 4;
    at += send[r];
  }
  const aot_collective_t uneven = {.kind = AOT_COLLECTIVE_ALL_TO_ALL, .send = send, .receive = receive};
  CHECK(collect(c, g, uneven, b, n * (rank + 1) * 4, a, at) == AOT_OK);
  for (uint32_t r = 0; r < n; r++)
    for (uint32_t i = 0; i <= rank; i++) CHECK(b[r * (rank + 1) + i] == (float)(r * 1000 + rank * (rank + 1) / 2 + i));
  CHECK(collect(c, g, (aot_collective_t){.kind = AOT_COLLECTIVE_BARRIER}, NULL, 0, NULL, 0) == AOT_OK);
  return NULL;
}

/* Even and odd ranks apart, each in turned order. */
static const char *groups(const aot_communicator_t *c, aot_group_t *g, uint32_t rank, uint32_t n) {
  aot_group_t *part;
  aot_group_info_t info = {.struct_size = sizeof info};
  uint32_t all[64] = {0}, own = rank;
  CHECK(c->split(c, NULL, g, rank % 2, n - rank, &part) == AOT_OK);
  CHECK(c->info(c, part, &info) == AOT_OK);
  const uint32_t n_part = (n + 1 - rank % 2) / 2;
  int is_right = info.n_ranks == n_part && info.rank == n_part - 1 - rank / 2;
  is_right = is_right && collect(c, part, (aot_collective_t){.kind = AOT_COLLECTIVE_ALL_GATHER}, all, n_part * 4, &own,
                                 4) == AOT_OK;
  for (uint32_t k = 0; k < n_part; k++) is_right = is_right && all[n_part - 1 - k] == 2 * k + rank % 2;
  c->leave(c, part);
  CHECK(is_right);
  return NULL;
}

static const char *counts(const aot_communicator_t *c, const aot_group_t *g, uint32_t n) {
  aot_group_info_t info = {.struct_size = sizeof info};
  aot_str_t text;
  CHECK(c->info(c, g, &info) == AOT_OK);
  CHECK(info.n_collectives > 10 && info.spent_ns > 0);
  CHECK(n == 1 ? info.gathered_nbytes == 0 : info.gathered_nbytes >= (n - 1) * N * 4);
  CHECK(n == 1 ? info.scattered_nbytes == 0 : info.scattered_nbytes >= (n - 1) * N * 4);
  CHECK(c->failure(c, g, &text) == AOT_OK);
  return NULL;
}

const char *rn_conformance(const aot_communicator_t *c, aot_group_t *g) {
  aot_group_info_t info = {.struct_size = sizeof info};
  CHECK(c->info(c, g, &info) == AOT_OK && info.rank < info.n_ranks && info.n_ranks <= 64);
  float *a = calloc((size_t)info.n_ranks * N, sizeof *a), *b = calloc((size_t)info.n_ranks * N, sizeof *b);
  const char *wrong = a && b ? gathers(c, g, info.rank, info.n_ranks, a, b) : "memory";
  if (!wrong) wrong = reductions(c, g, info.rank, info.n_ranks, a, b);
  if (!wrong) wrong = exchanges(c, g, info.rank, info.n_ranks, a, b);
  if (!wrong) wrong = groups(c, g, info.rank, info.n_ranks);
  if (!wrong) wrong = counts(c, g, info.n_ranks);
  free(a);
  free(b);
  return wrong;
}

const char *rn_disagree(const aot_communicator_t *c, aot_group_t *g) {
  aot_group_info_t info = {.struct_size = sizeof info};
  CHECK(c->info(c, g, &info) == AOT_OK);
  float from[4] = {1, 2, 3, 4}, to[4];
  const uint64_t nbytes = info.rank == 1 ? 8 : 16;
  const aot_collective_t sum = {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32};
  const aot_status_t status = collect(c, g, sum, to, nbytes, from, nbytes);
  aot_str_t text;
  CHECK(status == AOT_E_CONTRACT || status == AOT_E_UNAVAILABLE);
  CHECK(c->failure(c, g, &text) == status);
  CHECK(collect(c, g, sum, to, 16, from, 16) == status); /* from now on */
  static const char same[] = "the ranks do not run the same program";
  for (uint64_t i = 0; i + sizeof same <= text.size + 1; i++)
    if (memcmp(text.data + i, same, sizeof same - 1) == 0) return NULL;
  return "the failure does not say that programs differ";
}
