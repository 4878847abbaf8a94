/* Rules of devices: their memory, and what moves bytes there, within it and back. */
#include <sdk/conform/conform_tried_device.h>

#include <stdlib.h>
#include <string.h>

/* ---- 702: memory ---- */

#define LARGEST ((4u << 20) + 12345u)
static const uint64_t sizes[] = {0, 1, 0, 3, 63, 64, 65, 4095, 4096, 4097, 1 << 20, LARGEST};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static void has_sizes(aoth_tried_t *d) {
  aot_device_info_t info = {.struct_size = sizeof info};
  aot_buffer_t b[N_SIZES];
  if (!aoth_tried_went(d, d->f->info(d->self, &info), "info")) return;
  for (uint32_t i = 0; i < N_SIZES; i++) {
    if (!aoth_tried_alloc(d, sizes[i], &b[i])) return;
    if (!b[i].address) aoth_tried_fail(d, "alloc", "answers address 0");
    if (b[i].nbytes != sizes[i]) aoth_tried_fail(d, "alloc", "answers another size than it was asked for");
    if (info.alignment && b[i].address % info.alignment)
      aoth_tried_fail(d, "alloc", "answers an address that is not aligned");
    for (uint32_t k = 0; k < i; k++) {
      const uint64_t n = b[k].nbytes ? b[k].nbytes : 1, m = sizes[i] ? sizes[i] : 1;
      if (b[k].address < b[i].address + m && b[i].address < b[k].address + n)
        aoth_tried_fail(d, "alloc", "answers addresses of a buffer that is there");
    }
  }
  for (uint32_t i = 0; i < N_SIZES; i++) aoth_tried_free(d, b[(i * 5 + 3) % N_SIZES]);
}

static void tells_what_it_has_not(aoth_tried_t *d) {
  static const uint64_t most[] = {UINT64_C(1) << 60, UINT64_MAX / 2, UINT64_MAX - 100, UINT64_MAX};
  aot_buffer_t b;
  for (uint32_t i = 0; i < 4; i++)
    if (!aoth_tried_was_refused(d, d->f->alloc(d->self, &d->ctx, most[i], &b), AOT_E_EXHAUSTED,
                                "alloc of more than there is"))
      return;
  if (aoth_tried_alloc(d, 64, &b)) aoth_tried_free(d, b);
}

static void has_host_memory(aoth_tried_t *d) {
  void *at[3];
  for (uint32_t i = 0; i < 3; i++) {
    if (!aoth_tried_host_alloc(d, sizes[i * 4 + 1], &at[i])) return;
    if (!at[i]) aoth_tried_fail(d, "host_alloc", "answers no address");
    else memset(at[i], 1, (size_t)sizes[i * 4 + 1]);
  }
  for (uint32_t i = 0; i < 3; i++) aoth_tried_host_free(d, at[i], sizes[i * 4 + 1]);
  aoth_tried_was_refused(d, d->f->host_alloc(d->self, &d->ctx, UINT64_MAX / 2, &at[0]), AOT_E_EXHAUSTED,
                         "host_alloc of more than there is");
}

void aoth_rule_memory(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {{"buffers of 0 bytes to four megabytes", has_sizes},
                                            {"buffers of more than there is", tells_what_it_has_not},
                                            {"memory of the host", has_host_memory}};
  aoth_tried_run(t, steps, 3);
}

/* ---- 703: moves ---- */

#define N_MOVED 5000u

static void moves_sizes(aoth_tried_t *d) {
  uint8_t *from = malloc(LARGEST), *to = malloc(LARGEST);
  aot_buffer_t b;
  for (uint32_t i = 0; from && to && i < N_SIZES; i++) {
    aoth_tried_make_bytes(from, sizes[i], i);
    memset(to, 0, (size_t)sizes[i]);
    if (!aoth_tried_alloc(d, sizes[i], &b) || !aoth_tried_write(d, d->one, b, from) ||
        !aoth_tried_read(d, d->one, to, b) || !aoth_tried_finish(d, d->one) ||
        !aoth_tried_is_same(d, to, from, sizes[i], "what was written and read") || !aoth_tried_free(d, b))
      break;
  }
  free(from);
  free(to);
}

/* Each move is made on the host's own bytes, too. */
static void moves_ranges(aoth_tried_t *d) {
  uint8_t *own = calloc(3, N_MOVED), *from = own ? own + N_MOVED : NULL, *to = own ? from + N_MOVED : NULL;
  uint64_t random = 12345;
  aot_buffer_t b;
  int ok = own && aoth_tried_alloc(d, N_MOVED, &b) && aoth_tried_fill(d, d->one, b, 0);
  for (uint32_t i = 0; ok && i < 300; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    const uint64_t half = N_MOVED / 2, n = (random >> 33) % 97, at = (random >> 13) % (half - 97),
                   other = half + (random >> 45) % (half - 97);
    const int goes_up = (int)(random >> 60 & 1); /* between halves: copies may not overlap */
    const uint64_t source = goes_up ? at : other, target = goes_up ? other : at;
    aoth_tried_make_bytes(from, n, i);
    if (i % 3 == 0)
      ok = aoth_tried_write(d, d->one, aoth_tried_part(b, target, n), from) && aoth_tried_finish(d, d->one);
    else if (i % 3 == 1) ok = aoth_tried_copy(d, d->one, aoth_tried_part(b, target, n), b.address + source);
    else ok = aoth_tried_fill(d, d->one, aoth_tried_part(b, target, n), (uint8_t)i);
    if (i % 3 == 1) memcpy(own + target, own + source, (size_t)n);
    else if (i % 3 == 0) memcpy(own + target, from, (size_t)n);
    else memset(own + target, (uint8_t)i, (size_t)n);
  }
  ok = ok && aoth_tried_read(d, d->one, to + 1, aoth_tried_part(b, 1, N_MOVED - 2)) && aoth_tried_finish(d, d->one) &&
       aoth_tried_is_same(d, to + 1, own + 1, N_MOVED - 2, "a buffer after 300 moves of its parts") &&
       aoth_tried_free(d, b);
  free(own);
}

static void moves_host_memory(aoth_tried_t *d) {
  void *from, *to;
  aot_buffer_t b, c;
  if (!aoth_tried_host_alloc(d, N_MOVED, &from) || !aoth_tried_host_alloc(d, N_MOVED, &to) ||
      !aoth_tried_alloc(d, N_MOVED, &b) || !aoth_tried_alloc(d, N_MOVED, &c))
    return;
  aoth_tried_make_bytes(from, N_MOVED, 9);
  memset(to, 0, N_MOVED);
  const int ok = aoth_tried_write(d, d->two, b, from) && aoth_tried_copy(d, d->two, c, b.address) &&
                 aoth_tried_read(d, d->two, to, c) && aoth_tried_finish(d, d->two) &&
                 aoth_tried_is_same(d, to, from, N_MOVED, "what went from memory of host_alloc to another");
  if (!ok || !aoth_tried_free(d, b) || !aoth_tried_free(d, c)) return;
  aoth_tried_host_free(d, from, N_MOVED);
  aoth_tried_host_free(d, to, N_MOVED);
}

void aoth_rule_moves(aoth_trial_t *t) {
  static const aoth_tried_step_t steps[] = {{"writes and reads of 0 bytes to four megabytes", moves_sizes},
                                            {"writes, copies and fills of parts of a buffer", moves_ranges},
                                            {"moves between memory of the host's", moves_host_memory}};
  aoth_tried_run(t, steps, 3);
}
