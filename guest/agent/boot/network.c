#include "network.h"
#include "../console.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char guest_address[] = "10.0.2.15", netmask[] = "255.255.255.0";
static const char gateway[] = "10.0.2.2";
static const char resolv_conf[] = "nameserver 10.0.2.3\n";

static struct sockaddr address_of(const char *dotted) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct sockaddr generic;
    inet_pton(AF_INET, dotted, &address.sin_addr);
    memcpy(&generic, &address, sizeof generic);
    return generic;
}

static bool bring_up(int fd, const char *name) {
    struct ifreq request = {0};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        return false;
    request.ifr_flags |= IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

static bool set_address(int fd, unsigned long which, const char *dotted) {
    struct ifreq request = {.ifr_name = "eth0", .ifr_addr = address_of(dotted)};
    return ioctl(fd, which, &request) == 0;
}

static bool add_default_route(int fd) {
    struct rtentry route = {
        .rt_dst = address_of("0.0.0.0"),
        .rt_genmask = address_of("0.0.0.0"),
        .rt_gateway = address_of(gateway),
        .rt_flags = RTF_UP | RTF_GATEWAY,
    };
    return ioctl(fd, SIOCADDRT, &route) == 0;
}

static bool write_resolv_conf(void) {
    int fd = open("/etc/resolv.conf", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    size_t length = strlen(resolv_conf);
    bool done = write(fd, resolv_conf, length) == (ssize_t)length;
    return close(fd) == 0 && done;
}

void network_loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0 ||
        (!(request.ifr_flags & IFF_UP) && !bring_up(fd, "lo")))
        console_error("lo");
    if (fd >= 0)
        close(fd);
}

void network_up(void) {
    network_loopback_up();
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        console_error("socket");
        return;
    }
    if (if_nametoindex("eth0") != 0 &&
        !(set_address(fd, SIOCSIFADDR, guest_address) && set_address(fd, SIOCSIFNETMASK, netmask) &&
          bring_up(fd, "eth0") && add_default_route(fd) && write_resolv_conf()))
        console_error("eth0");
    close(fd);
}
