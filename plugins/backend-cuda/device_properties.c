#include "device_properties.h"

/* Operations of one processor in one cycle, dense, sums in float: NVIDIA's white papers of the architectures. The last
 * row that is not newer counts. */
static const struct {
  int arch, halves, singles, doubles;
} processors[] = {
    {0, 256, 128, 4},  {70, 1024, 128, 64},  {75, 512, 128, 4},     {80, 2048, 128, 128},
    {86, 512, 256, 4}, {90, 4096, 256, 256}, {100, 8192, 256, 128}, {120, 1024, 256, 4},
};

/* Parts of the peak that remain when the chip is at its power limit: 4.2 of 4.9 TB/s, 690 of 990 TFLOP/s on an H200. */
#define COPY_SHARE 0.85
#define WORK_SHARE 0.7
#define NODE_NS 1000 /* of a graph's node, and what it takes to fill the chip */

static double attribute(const gc_driver_t *driver, int which, gc_ordinal_t device, double otherwise) {
  int value = 0;
  return device >= 0 && driver->device_get_attribute(&value, which, device) == GC_SUCCESS && value > 0 ? value
                                                                                                       : otherwise;
}

gc_facts_t gc_facts_of(const gc_driver_t *driver, gc_ordinal_t device) {
  const double major = attribute(driver, GC_CAPABILITY_MAJOR, device, 9);
  const double minor = device < 0 ? 0 : attribute(driver, GC_CAPABILITY_MINOR, device, 0);
  const double n = attribute(driver, GC_MULTIPROCESSORS, device, 132);
  const double ghz = attribute(driver, GC_CLOCK_KHZ, device, 1830e3) * 1e-6;
  const double memory_ghz = attribute(driver, GC_MEMORY_CLOCK_KHZ, device, 2619e3) * 1e-6;
  const double bus = attribute(driver, GC_MEMORY_BUS_BITS, device, 5120);
  const double shared = attribute(driver, GC_SHARED_MEMORY_OPTIN, device, 227 << 10);
  const double of_processor = attribute(driver, GC_SHARED_MEMORY_OF_PROCESSOR, device, 228 << 10);
  const int arch = (int)(10 * major + minor);
  gc_facts_t f = {.machine = {(uint32_t)arch, (uint32_t)n, (uint32_t)shared, (uint32_t)of_processor}};
  size_t row = 0;
  while (row + 1 < sizeof processors / sizeof *processors && processors[row + 1].arch <= arch) row++;
  f.rates = (nc_rates_t){
      .bytes = COPY_SHARE * memory_ghz * 2 * bus / 8, /* two transfers a cycle */
      .halves = WORK_SHARE * n * ghz * processors[row].halves,
      .singles = WORK_SHARE * n * ghz * processors[row].singles,
      .doubles = WORK_SHARE * n * ghz * processors[row].doubles,
      .node_ns = NODE_NS,
  };
  return f;
}
