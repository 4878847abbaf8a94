#include <ir/properties.h>

#include <aot/inline.h>
#include <base/text.h>

uint32_t aoth_property_find(aot_str_t name) {
#define FIND_ROW(row, number, text, meaning)                                                                           \
  if (aot_str_eq(name, aot_str(text))) return 1u << number;
  AOT_PROPERTY_MAP(FIND_ROW)
#undef FIND_ROW
  return 0;
}

const char *aoth_property_nearest(aot_str_t name) {
#define NAME_ROW(row, number, text, meaning) AOT_STR_INIT(text),
  static const aot_str_t names[] = {AOT_PROPERTY_MAP(NAME_ROW)};
#undef NAME_ROW
  const int near = aoth_nearest(name, names, sizeof names / sizeof *names);
  return near < 0 ? NULL : names[near].data;
}
