/* Linked against and not there at run time. */
int gone(void);
int gone(void) { return 1; }
