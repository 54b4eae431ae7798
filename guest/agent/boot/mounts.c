#include "mounts.h"
#include "../console.h"
#include "programs.h"
#include "root-device.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void must_mount(const char *source, const char *target, const char *type,
                       unsigned long flags, const char *options) {
    // Where the directory already exists, or the root is read-only, mount says what matters.
    mkdir(target, 0755);
    if (mount(source, target, type, flags, options) != 0) {
        console_log("mounting %s on %s: %s", type == NULL ? source : type, target, strerror(errno));
        console_fatal("cannot go on");
    }
}

void mount_early(void) {
    must_mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
    must_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    must_mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

// Removes the initramfs' files, whose memory nothing else would give back. Mounted directories are
// left alone: they are on other devices.
static void free_initramfs(int directory, dev_t device) {
    DIR *entries = fdopendir(directory);
    if (entries == NULL) {
        close(directory);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        const char *name = entry->d_name;
        struct stat status;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            fstatat(dirfd(entries), name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            status.st_dev != device)
            continue;
        if (S_ISDIR(status.st_mode)) {
            int child = openat(dirfd(entries), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (child >= 0)
                free_initramfs(child, device);
        }
        // A directory that is a mount point stays.
        unlinkat(dirfd(entries), name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
    }
    closedir(entries);
}

static void relocate(const char *from, const char *to) {
    if (mount(from, to, NULL, MS_MOVE, NULL) != 0)
        console_fatal(from);
}

void mount_root(void) {
    char device[64];
    if (!root_device_find(device))
        console_fatal("no virtio block device with an ext4 file system");
    must_mount(device, "/lower", "ext4", MS_RDONLY | MS_NOATIME, NULL);
    must_mount("tmpfs", "/writes", "tmpfs", 0, "mode=0755");
    mkdir("/writes/upper", 0755);
    mkdir("/writes/work", 0755);
    must_mount("overlay", "/root", "overlay", MS_NOATIME,
               "lowerdir=/lower,upperdir=/writes/upper,workdir=/writes/work,redirect_dir=on,"
               "index=off,xino=off");
    programs_install("/programs", "/root/usr/local/bin");
    relocate("/dev", "/root/dev");
    relocate("/proc", "/root/proc");
    relocate("/sys", "/root/sys");
    int initramfs = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat status;
    if (initramfs < 0 || fstat(initramfs, &status) != 0)
        console_fatal("/");
    if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
        chdir("/") != 0)
        console_fatal("switching to the root");
    free_initramfs(initramfs, status.st_dev);
}

static void must_link(const char *target, const char *path) {
    if (symlink(target, path) != 0 && errno != EEXIST)
        console_error(path);
}

// Half of the memory is the overlay's: with the shares below, full file systems leave room to run.
void mount_late(void) {
    must_mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620");
    must_mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=20%");
    must_mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=25%");
    must_mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    must_link("/proc/self/fd", "/dev/fd");
    must_link("/proc/self/fd/0", "/dev/stdin");
    must_link("/proc/self/fd/1", "/dev/stdout");
    must_link("/proc/self/fd/2", "/dev/stderr");
    if (mkdir("/run/lock", 01777) != 0)
        console_error("/run/lock");
}
