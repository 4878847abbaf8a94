/* The extensions that a unit offers by its table, whatever its kind. */
#include <sandbox/extension.h>

#include <aot/inline.h>
#include <string.h>

aot_status_t aoth_instance_extension(const aoth_instance_t *i, const char *id, void *out, uint32_t size) {
  const void *given = aot_ext(i->self, id);
  return given ? aot_import(out, size, given) : AOT_E_NOT_FOUND;
}
