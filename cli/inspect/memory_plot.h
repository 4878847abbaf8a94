/* Memory plans as pictures: areas of bytes over steps, stacked by kind, the largest buffers as bands of their own;
 * several plans in panels with one scale. Files stay small whatever the number of steps: at most 480 columns a panel,
 * each the step of its part of the axis with the most bytes alive, and 32 bands. */
#ifndef AOTH_MEMORY_PLOT_H
#define AOTH_MEMORY_PLOT_H

#include <cli/inspect/memory_view.h>

/* An <svg> element with its style: a file, or a part of a page. Classes begin with "am". r->top has no say here. */
aot_status_t aoth_memory_svg(const aoth_memory_report_t *r, kit_text_t *out);

/* A page with the picture and a table of the r->top largest holders of each plan. Nothing comes from the network. */
aot_status_t aoth_memory_html(const aoth_memory_report_t *r, kit_text_t *out);

/* For other pages with such pictures: the script that shows a band's name next to the pointer (in the body, after
 * them), the style of tables of class "am-table" and of the tip, and the table of a plan's r->top largest holders. */
const char *aoth_memory_script(void);
const char *aoth_memory_style(void);
void aoth_memory_table(const aoth_memory_report_t *r, const aoth_memory_view_t *v, kit_text_t *out);

#endif
