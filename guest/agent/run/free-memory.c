#include "free-memory.h"
#include "../console.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t free_memory_bytes(void) {
    // One of the first lines of many.
    static const char name[] = "\nMemAvailable:";
    char text[512];
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[count < 0 ? 0 : count] = '\0';
    const char *found = strstr(text, name);
    if (found == NULL) {
        console_error("/proc/meminfo");
        return 0;
    }
    return strtoull(found + strlen(name), NULL, 10) * 1024;
}
