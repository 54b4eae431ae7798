/*
 * Plays a VMM that was taken over: tries what its jail must not let it do, and prints how each
 * attempt ended. It also runs without a jail, as root, to show that the attempts work there: none
 * may change anything but the directories it is given.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARG_HOME = 1, ARG_SOCKET, ARG_PORT, ARG_BASE, ARG_OUTSIDE, ARG_SESSION, ARG_PID, ARG_COUNT };

/* 0 or an errno */
static int list(const char *path) {
    DIR *directory = opendir(path);
    if (directory == NULL)
        return errno;
    return closedir(directory) == 0 ? 0 : errno;
}

static int open_file(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    return close(fd) == 0 ? 0 : errno;
}

static int create_in(const char *directory) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/probe", directory);
    if (length < 0 || (size_t)length >= sizeof path)
        return ENAMETOOLONG;
    return open_file(path, O_CREAT | O_WRONLY);
}

static int connect_to(int domain, const struct sockaddr *address, socklen_t length) {
    int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, address, length) == 0 ? 0 : errno;
    return close(fd) == 0 ? error : errno;
}

static int connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    return connect_to(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

static int connect_tcp(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return connect_to(AF_INET, (const struct sockaddr *)&address, sizeof address);
}

/* What `attempt` gives in a process of its own, which it may replace or change for good. */
static int in_child(int (*attempt)(void)) {
    pid_t child = fork();
    if (child < 0)
        return errno;
    if (child == 0)
        _exit(attempt());
    int status = 0;
    if (waitpid(child, &status, 0) < 0)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int exec_shell(void) {
    char *argv[] = {"sh", "-c", "exit 0", NULL};
    execve("/bin/sh", argv, argv + 3);
    return errno;
}

static int new_user_namespace(void) {
    return unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}

/* 0 when none is effective */
static unsigned capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &header, data) != 0)
        exit(1);
    return data[0].effective | data[1].effective;
}

static void tell(const char *name, int error) {
    printf("\"%s\": \"%s\", ", name, error == 0 ? "ok" : strerrorname_np(error));
}

static void tell_limit(const char *name, __rlimit_resource_t resource) {
    struct rlimit limit = {0};
    if (getrlimit(resource, &limit) != 0)
        exit(1);
    printf("\"%s\": %.0f, ", name, limit.rlim_max == RLIM_INFINITY ? -1.0 : (double)limit.rlim_max);
}

int main(int argc, char **argv) {
    if (argc != ARG_COUNT)
        return 2;
    printf("{");
    tell("list_home", list(argv[ARG_HOME]));
    tell("list_processes", list("/proc"));
    tell("read_passwords", open_file("/etc/passwd", O_RDONLY));
    tell("connect_other_session", connect_unix(argv[ARG_SOCKET]));
    tell("connect_network", connect_tcp(argv[ARG_PORT]));
    tell("exec_shell", in_child(exec_shell));
    tell("new_user_namespace", in_child(new_user_namespace));
    tell("signal_server", kill((pid_t)strtol(argv[ARG_PID], NULL, 10), 0) == 0 ? 0 : errno);
    tell("read_base", open_file(argv[ARG_BASE], O_RDONLY));
    tell("write_base", open_file(argv[ARG_BASE], O_WRONLY));
    tell("create_outside", create_in(argv[ARG_OUTSIDE]));
    tell("write_root", access("/", W_OK) == 0 ? 0 : errno);
    tell("create_in_session", create_in(argv[ARG_SESSION]));
    tell_limit("core_bytes", RLIMIT_CORE);
    tell_limit("file_bytes", RLIMIT_FSIZE);
    tell_limit("address_bytes", RLIMIT_AS);
    tell_limit("descriptors", RLIMIT_NOFILE);
    printf("\"no_new_privs\": %d, \"capabilities\": %u, \"uid\": %u, \"pid\": %d}\n",
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), capabilities(), getuid(), getpid());
    return fflush(stdout) == 0 ? 0 : 1;
}
