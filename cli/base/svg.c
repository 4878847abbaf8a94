#include <cli/base/svg.h>

#include <stdio.h>
#include <string.h>

void aoth_xml_escape(kit_text_t *out, const char *text) {
  for (; *text; text++) {
    switch (*text) {
      case '&': kit_text_z(out, "&amp;"); break;
      case '<': kit_text_z(out, "&lt;"); break;
      case '>': kit_text_z(out, "&gt;"); break;
      case '"': kit_text_z(out, "&quot;"); break;
      case '\'': kit_text_z(out, "&#39;"); break;
      default: kit_text_add(out, text, 1);
    }
  }
}

/* One digit after the point, none where it is 0. */
static void number(kit_text_t *out, double x) {
  char text[40];
  int n = snprintf(text, sizeof text, "%.1f", x);
  if (n > 2 && text[n - 1] == '0') text[n - 2] = 0;
  kit_text_z(out, strcmp(text, "-0") == 0 ? "0" : text);
}

static void attribute(kit_text_t *out, const char *name, double x) {
  kit_text_f(out, " %s=\"", name);
  number(out, x);
  kit_text_z(out, "\"");
}

void aoth_svg_begin(kit_text_t *out, double width, double height, const char *title, const char *style) {
  kit_text_z(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ");
  number(out, width);
  kit_text_z(out, " ");
  number(out, height);
  kit_text_z(out, "\"");
  attribute(out, "width", width);
  attribute(out, "height", height);
  kit_text_z(out, " class=\"am\" role=\"img\">\n<title>");
  aoth_xml_escape(out, title);
  kit_text_f(out, "</title>\n<style>\n%s</style>\n", style);
}

void aoth_svg_end(kit_text_t *out) { kit_text_z(out, "</svg>\n"); }

void aoth_svg_rect(kit_text_t *out, const char *classes, double x, double y, double width, double height) {
  kit_text_f(out, "<rect class=\"%s\"", classes);
  attribute(out, "x", x);
  attribute(out, "y", y);
  attribute(out, "width", width);
  attribute(out, "height", height);
  kit_text_z(out, "/>\n");
}

void aoth_svg_line(kit_text_t *out, const char *classes, double x1, double y1, double x2, double y2) {
  kit_text_f(out, "<line class=\"%s\"", classes);
  attribute(out, "x1", x1);
  attribute(out, "y1", y1);
  attribute(out, "x2", x2);
  attribute(out, "y2", y2);
  kit_text_z(out, "/>\n");
}

void aoth_svg_circle(kit_text_t *out, const char *classes, double x, double y, double r) {
  kit_text_f(out, "<circle class=\"%s\"", classes);
  attribute(out, "cx", x);
  attribute(out, "cy", y);
  attribute(out, "r", r);
  kit_text_z(out, "/>\n");
}

void aoth_svg_text(kit_text_t *out, const char *classes, double x, double y, const char *text) {
  kit_text_f(out, "<text class=\"%s\"", classes);
  attribute(out, "x", x);
  attribute(out, "y", y);
  kit_text_z(out, ">");
  aoth_xml_escape(out, text);
  kit_text_z(out, "</text>\n");
}

static int is_between(aoth_point_t a, aoth_point_t b, aoth_point_t c) {
  return (a.x == b.x && b.x == c.x) || (a.y == b.y && b.y == c.y);
}

void aoth_svg_area(kit_text_t *out, const char *classes, const aoth_point_t *points, size_t n, const char *tip) {
  kit_text_f(out, "<path class=\"%s\" d=\"", classes);
  for (size_t i = 0; i < n; i++) {
    if (i && i + 1 < n && is_between(points[i - 1], points[i], points[i + 1])) continue;
    kit_text_z(out, i ? "L" : "M");
    number(out, points[i].x);
    kit_text_z(out, " ");
    number(out, points[i].y);
  }
  if (!tip) {
    kit_text_z(out, "Z\"/>\n");
    return;
  }
  kit_text_z(out, "Z\"><title>");
  aoth_xml_escape(out, tip);
  kit_text_z(out, "</title></path>\n");
}
