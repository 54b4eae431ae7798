#include "modules.h"
#include "../console.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void load(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/modules/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        console_error(path);
        return;
    }
    if (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST)
        console_error(path);
    close(fd);
}

void modules_load(void) {
    char name[128];
    FILE *order = fopen("/modules/order", "re");
    if (order == NULL) {
        console_error("/modules/order");
        return;
    }
    while (fgets(name, sizeof name, order) != NULL) {
        name[strcspn(name, "\n")] = '\0';
        if (name[0] != '\0')
            load(name);
    }
    fclose(order);
}
