#include "environment.h"
#include <stdio.h>

// Made when the proxy begins, not when a run does.
static char http_proxy[48], https_proxy[48], all_proxy[48];
static char http_proxy_upper[48], https_proxy_upper[48], all_proxy_upper[48];

#define ORDINARY                                                                                   \
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",             \
        "LANG=C.UTF-8", "TERM=dumb"

static char *const ordinary[] = {ORDINARY, NULL};
static char *const proxied[] = {
    ORDINARY,
    http_proxy,
    https_proxy,
    all_proxy,
    http_proxy_upper,
    https_proxy_upper,
    all_proxy_upper,
    "no_proxy=localhost,127.0.0.1,::1",
    "NO_PROXY=localhost,127.0.0.1,::1",
    NULL,
};

static char *const *current = ordinary;

static void format(char to[48], const char *name, const char *scheme, uint16_t port) {
    snprintf(to, 48, "%s=%s://127.0.0.1:%u", name, scheme, (unsigned)port);
}

void environment_set_proxy(uint16_t port) {
    format(http_proxy, "http_proxy", "http", port);
    format(https_proxy, "https_proxy", "http", port);
    format(all_proxy, "all_proxy", "socks5h", port);
    format(http_proxy_upper, "HTTP_PROXY", "http", port);
    format(https_proxy_upper, "HTTPS_PROXY", "http", port);
    format(all_proxy_upper, "ALL_PROXY", "socks5h", port);
    current = port == 0 ? ordinary : proxied;
}

char *const *environment_now(void) {
    return current;
}
