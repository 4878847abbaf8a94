#include <base/exit_status.h>

int aoth_exit_code(aot_status_t status) {
  if (status == AOT_OK) return AOTH_EXIT_OK;
  return status == AOTH_E_PLUGIN ? AOTH_EXIT_PLUGIN : AOTH_EXIT_INPUT;
}
