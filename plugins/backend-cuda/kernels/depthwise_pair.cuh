/* Two adjacent channels, 0 outside of the image. */
#define LP_PAIR(to, is_inside, at) \
  { \
    LP_ALIGN16 element_t two[2] = {0, 0}; \
    if (is_inside) lp_move(two, at, 2 * sizeof(element_t)); \
    to[0] = LP_VALUE(two[0]), to[1] = LP_VALUE(two[1]); \
  }
