/* Writing SVG 1.1: one function an element, into a text. Lengths are pixels of the picture; classes are for the
 * style sheet. */
#ifndef AOTH_SVG_H
#define AOTH_SVG_H

#include "kit/base/text.h"

typedef struct aoth_point {
  double x, y;
} aoth_point_t;

/* style: CSS, put in as it is. title: what a screen reader says. No XML prolog, so that it can be in a page. */
void aoth_svg_begin(kit_text_t *out, double width, double height, const char *title, const char *style);
void aoth_svg_end(kit_text_t *out);
void aoth_svg_rect(kit_text_t *out, const char *classes, double x, double y, double width, double height);
void aoth_svg_line(kit_text_t *out, const char *classes, double x1, double y1, double x2, double y2);
void aoth_svg_circle(kit_text_t *out, const char *classes, double x, double y, double r);
void aoth_svg_text(kit_text_t *out, const char *classes, double x, double y, const char *text); /* escaped */
/* A closed outline; points in a straight row are left out. tip NULL: none; else reported when pointed at (escaped). */
void aoth_svg_area(kit_text_t *out, const char *classes, const aoth_point_t *points, size_t n, const char *tip);

/* & < > " ' ; other text is UTF-8 without control characters */
void aoth_xml_escape(kit_text_t *out, const char *text);

#endif
