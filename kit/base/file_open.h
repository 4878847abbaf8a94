/* Opening files that a user named, or that the program made, without waiting and without following what it must not. */
#ifndef KIT_FILE_OPEN_H
#define KIT_FILE_OPEN_H

#include <stdio.h>

/* Opens a regular file for reading and never waits for one: a directory, a named pipe, a socket or a device is refused.
 * A descriptor, with *out filled in; or -1, with errno and *out_why, which reads after "cannot read PATH: ". errno
 * EINVAL: the file is there, and refused. */
#define KIT_OPEN_OWN 1u  /* a file whose name the program chose: no symbolic link, and this user's */
#define KIT_OPEN_PIPE 2u /* or a pipe without a name, as /dev/stdin may be one */
struct stat;
int kit_file_open(const char *path, unsigned how, struct stat *out, const char **out_why);
FILE *kit_file_stream(const char *path, const char **out_why); /* the same, for lines of text; NULL: *out_why */

/* Are the two paths one file or folder, by device and inode? Two that do not exist are when their folder and name are.
 * Devices and pipes, of which nothing is lost, are not. */
int kit_file_same(const char *a, const char *b);

#endif
