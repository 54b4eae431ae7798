#include "console.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int console_fd = STDERR_FILENO;

void console_open(void) {
    int fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        console_fd = fd;
}

static void write_line(const char *line, size_t length) {
    // A console that cannot be written has nowhere to say so.
    while (length > 0) {
        ssize_t count = write(console_fd, line, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return;
        line += count;
        length -= (size_t)count;
    }
}

void console_marker(const char *marker) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s\n", marker);
    if (length > 0 && (size_t)length < sizeof line)
        write_line(line, (size_t)length);
}

void console_log(const char *format, ...) {
    char line[512];
    int used = snprintf(line, sizeof line, "ignition-agent: ");
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if (more < 0)
        return;
    size_t length = strlen(line);
    line[length] = '\n';
    write_line(line, length + 1);
}

void console_error(const char *what) {
    console_log("%s: %s", what, strerror(errno));
}

void console_fatal(const char *what) {
    console_error(what);
    exit(1);
}
