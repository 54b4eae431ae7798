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
    // Node looks at the others only if it is told to.
    "NODE_USE_ENV_PROXY=1",
    NULL,
};

static char *const *current = ordinary;

static void format(char to[48], const char *name, uint16_t port) {
    snprintf(to, 48, "%s=http://127.0.0.1:%u", name, (unsigned)port);
}

void environment_set_proxy(uint16_t port) {
    format(http_proxy, "http_proxy", port);
    format(https_proxy, "https_proxy", port);
    // No socks5h: Python's httpx does not even start where it knows no SOCKS.
    format(all_proxy, "all_proxy", port);
    format(http_proxy_upper, "HTTP_PROXY", port);
    format(https_proxy_upper, "HTTPS_PROXY", port);
    format(all_proxy_upper, "ALL_PROXY", port);
    current = port == 0 ? ordinary : proxied;
}

char *const *environment_now(void) {
    return current;
}
