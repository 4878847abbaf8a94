#include "link_cost.h"

#include <stdlib.h>
#include <string.h>

ov_link_t ov_link_of(double latency_ns, double bytes_per_ns) {
  const double far = 1e9;
  return (ov_link_t){
      .hops = {{.n_ranks = 1, .n_sizes = 2, .nbytes = {0, far}, .ns = {latency_ns, latency_ns + far / bytes_per_ns}}},
      .n_hops = 1};
}

/* ---- from text ---- */

static const char *skip(const char *at) { return at + strspn(at, " \t\n"); }

static const char *read_bytes(const char *at, double *out) {
  static const struct {
    const char *name;
    double factor;
  } units[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  char *end;
  *out = strtod(at, &end);
  if (end == at || *out < 0) return NULL;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strncmp(end, units[i].name, 3) == 0) {
      *out *= units[i].factor;
      return end + 3;
    }
  return end;
}

/* "8: 0=6 1MiB=9.5"; NULL: not so. */
static const char *read_hop(const char *at, ov_hop_t *h) {
  char *end;
  const unsigned long n_ranks = strtoul(skip(at), &end, 10);
  if (!n_ranks || n_ranks > UINT32_MAX || *end != ':') return NULL;
  *h = (ov_hop_t){.n_ranks = (uint32_t)n_ranks};
  for (at = skip(end + 1); *at && *at != ';'; at = skip(at)) {
    const uint32_t k = h->n_sizes;
    if (k == OV_MOST_SIZES || !(at = read_bytes(at, &h->nbytes[k])) || *at != '=') return NULL;
    h->ns[k] = strtod(at + 1, &end) * 1e3;
    if (end == at + 1 || h->ns[k] < 0 || (k && (h->nbytes[k] <= h->nbytes[k - 1] || h->ns[k] < h->ns[k - 1])))
      return NULL;
    at = end;
    h->n_sizes++;
  }
  return h->n_sizes ? at : NULL;
}

const char *ov_link_read(const char *text, size_t size, ov_link_t *out) {
  char copy[2048];
  if (size >= sizeof copy) return "it is too long";
  memcpy(copy, text, size);
  copy[size] = 0;
  *out = (ov_link_t){.n_hops = 0};
  for (const char *at = skip(copy); *at; at = skip(at + (*at == ';'))) {
    if (out->n_hops == OV_MOST_HOPS) return "there are more than 8 rows";
    ov_hop_t *h = &out->hops[out->n_hops];
    if (!(at = read_hop(at, h))) return "a row is 'RANKS: BYTES=US BYTES=US ..', with rising sizes and times";
    if (out->n_hops && h->n_ranks <= h[-1].n_ranks) return "rows are of more and more ranks";
    out->n_hops++;
  }
  return out->n_hops ? NULL : "it has no row";
}

/* ---- what it takes ---- */

static double message_ns(const ov_hop_t *h, double nbytes) {
  const uint32_t n = h->n_sizes;
  uint32_t k = 1;
  if (n == 1 || nbytes <= h->nbytes[0]) return h->ns[0];
  while (k + 1 < n && nbytes > h->nbytes[k]) k++;
  return h->ns[k - 1] + (h->ns[k] - h->ns[k - 1]) * (nbytes - h->nbytes[k - 1]) / (h->nbytes[k] - h->nbytes[k - 1]);
}

double ov_collective_ns(const ov_link_t *link, int kind, uint32_t n, uint32_t span, uint64_t nbytes) {
  uint32_t hop = 0;
  if (n < 2) return 0;
  while (hop + 1 < link->n_hops && span > link->hops[hop].n_ranks) hop++;
  const double steps = (double)(n - 1) * (kind == OV_REDUCE ? 2 : 1);
  return steps * message_ns(&link->hops[hop], (double)nbytes / n);
}
