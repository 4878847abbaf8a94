/* Random numbers: a function of the program that uses the code fills them; lp_below_i64: the upper half of a
 * product. */
typedef struct lp_draw {
  void (*fill)(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);
  uint64_t draw;
} lp_draw_t;
LP uint64_t lp_below_i64(uint64_t bits, uint64_t range) { return (uint64_t)((unsigned __int128)bits * range >> 64); }
