/* Pages that are alone in a file: nothing of them comes from elsewhere. Names come from users and models, so all text
 * is escaped here. The markup is well-formed XML after the first line. */
#ifndef AOTH_HTML_PAGE_H
#define AOTH_HTML_PAGE_H

#include <aot/status.h>
#include <base/sink.h>
#include "kit/base/text.h"

/* Up to the first thing in the body. style: CSS in addition to what all pages have (colours of day and night, tables
 * with numbers to the right in cells of class "n", and text as it was written in those of class "t"), put in as it
 * is. */
void aoth_html_begin(kit_text_t *out, const char *title, const char *style);
void aoth_html_end(kit_text_t *out);
/* <tag>text</tag> */
void aoth_html_element(kit_text_t *out, const char *tag, const char *text);
/* A cell of a table. classes: "": none. */
void aoth_html_cell(kit_text_t *out, const char *classes, const char *text);
/* To the file, replaced as a whole; what failed is reported. */
aot_status_t aoth_page_write(const kit_text_t *page, const char *path, aoth_sink_t *sink);

#endif
