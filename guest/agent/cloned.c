#include "cloned.h"
#include "console.h"
#include "run/run.h"
#include "tunnel/tunnels.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { ENTROPY_BYTES = 32, HOSTNAME_MAX = 63 };
static const int64_t LONGEST_PAUSE_US = 3600000000;

struct identity {
    const char *entropy, *hostname, *machine_id;
    int64_t wall_clock_us;
};

static bool is_hex(const char *text, size_t digits) {
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static bool is_hostname(const char *text) {
    size_t length = strlen(text);
    return length >= 1 && length <= HOSTNAME_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static uint8_t hex_value(char digit) {
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static bool reseed(const char *hex) {
    union {
        struct rand_pool_info info;
        uint8_t bytes[sizeof(struct rand_pool_info) + ENTROPY_BYTES];
    } pool = {.info = {.entropy_count = ENTROPY_BYTES * 8, .buf_size = ENTROPY_BYTES}};
    uint8_t *entropy = pool.bytes + offsetof(struct rand_pool_info, buf);
    for (size_t i = 0; i < ENTROPY_BYTES; i++)
        entropy[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
    int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = ioctl(fd, RNDADDENTROPY, &pool.info) == 0 && ioctl(fd, RNDRESEEDCRNG) == 0;
    int error_number = errno;
    explicit_bzero(&pool, sizeof pool);
    close(fd);
    errno = error_number;
    return done;
}

static bool set_clock(int64_t wall_clock_us) {
    struct timespec now = {.tv_sec = wall_clock_us / 1000000,
                           .tv_nsec = wall_clock_us % 1000000 * 1000};
    return clock_settime(CLOCK_REALTIME, &now) == 0;
}

static bool write_small_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    size_t length = strlen(text);
    bool done = write(fd, text, length) == (ssize_t)length;
    return close(fd) == 0 && done;
}

static bool name_host(const char *hostname) {
    char line[HOSTNAME_MAX + 2], hosts[256];
    snprintf(line, sizeof line, "%s\n", hostname);
    snprintf(hosts, sizeof hosts,
             "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
             hostname);
    return sethostname(hostname, strlen(hostname)) == 0 &&
           write_small_file("/etc/hostname", line) && write_small_file("/etc/hosts", hosts);
}

static bool write_machine_id(const char *machine_id) {
    char line[34];
    snprintf(line, sizeof line, "%s\n", machine_id);
    return write_small_file("/etc/machine-id", line);
}

void cloned_name_base(void) {
    if (!name_host("ignition") || !write_machine_id("uninitialized"))
        console_error("the base's names");
}

void cloned_answer(struct link *link, uint32_t stream, const struct json_object *request) {
    struct identity identity = {.entropy = "", .hostname = "", .machine_id = ""};
    if (!json_get_string(request, "entropy", &identity.entropy) ||
        !json_get_string(request, "hostname", &identity.hostname) ||
        !json_get_string(request, "machine_id", &identity.machine_id) ||
        !json_get_integer(request, "wall_clock_us", 1, INT64_MAX, &identity.wall_clock_us) ||
        !is_hex(identity.entropy, ENTROPY_BYTES * 2) || !is_hostname(identity.hostname) ||
        !is_hex(identity.machine_id, 32) || identity.wall_clock_us == 0) {
        link_send_error(link, stream, "bad_request", 0, "CLONED has a missing or invalid member");
        return;
    }
    const char *failed = !set_clock(identity.wall_clock_us)       ? "the clock was not set"
                         : !reseed(identity.entropy)              ? "the CRNG was not reseeded"
                         : !name_host(identity.hostname)          ? "the hostname was not set"
                         : !write_machine_id(identity.machine_id) ? "the machine id was not written"
                                                                  : NULL;
    if (failed != NULL) {
        link_send_error(link, stream, "cloned_failed", errno, failed);
        return;
    }
    // Whoever is at the other end of a tunnel spoke to the guest this one was made from.
    tunnels_reset_all();
    // In a fork the parent's processes have waited for this.
    runs_release();
    link_send(link, FRAME_OK, stream, "{}", 2);
}

// The clock stood still while the machine did; whoever set it otherwise keeps that.
static bool advance_clock(int64_t by_us) {
    struct timespec now;
    return clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           set_clock((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + by_us);
}

void release_answer(struct link *link, uint32_t stream, const struct json_object *request) {
    int64_t paused_us = 0;
    bool valid = json_get_integer(request, "paused_us", 0, LONGEST_PAUSE_US, &paused_us);
    runs_release();
    if (!valid)
        link_send_error(link, stream, "bad_request", 0, "paused_us is not 0 to 3600000000");
    else if (paused_us > 0 && !advance_clock(paused_us))
        link_send_error(link, stream, "release_failed", errno, "the clock was not set");
    else
        link_send(link, FRAME_OK, stream, "{}", 2);
}
