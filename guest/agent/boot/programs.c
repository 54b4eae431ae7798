#include "programs.h"
#include "../console.h"
#include "../file/path.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

// False with errno set; what was written of it stays.
static bool copy_program(int from, const char *to) {
    struct stat status;
    int fd =
        fstat(from, &status) == 0 ? open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755) : -1;
    if (fd < 0)
        return false;
    ssize_t count = 1;
    while (count > 0 && status.st_size > 0) {
        count = sendfile(fd, from, NULL, (size_t)status.st_size);
        status.st_size -= count;
    }
    return close(fd) == 0 && status.st_size == 0;
}

void programs_install(const char *from_directory, const char *to_directory) {
    char from[320], to[320];
    DIR *programs = opendir(from_directory);
    for (struct dirent *entry; programs != NULL && (entry = readdir(programs)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(from, sizeof from, "%s/%s", from_directory, entry->d_name);
        snprintf(to, sizeof to, "%s/%s", to_directory, entry->d_name);
        int fd = open(from, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !path_make_parents(to) || !copy_program(fd, to))
            console_error(to);
        if (fd >= 0)
            close(fd);
    }
    if (programs == NULL)
        console_error(from_directory);
    else
        closedir(programs);
}
