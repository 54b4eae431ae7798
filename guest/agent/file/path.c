#include "path.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool path_resolve(char absolute[PATH_MAX], const char *path) {
    int length = snprintf(absolute, PATH_MAX, "%s%s", path[0] == '/' ? "" : "/root/", path);
    return path[0] != '\0' && length > 0 && length < PATH_MAX;
}

bool path_make_parents(const char *absolute) {
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", absolute);
    for (char *at = strchr(parent + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(parent, 0755) != 0 && errno != EEXIST)
            return false;
        *at = '/';
    }
    return true;
}

const char *path_error_code(int error_number) {
    switch (error_number) {
    case EISDIR:
        return "is_directory";
    case ENOENT:
        return "not_found";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "no_space";
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
        return "bad_path";
    default:
        return "io_failed";
    }
}
