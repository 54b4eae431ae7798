// The processes of a session, found in /proc. One that made its own session escapes: cgroups do not
// have that hole, so this is only for hosts without them.
#ifndef IGNITION_SESSION_MEMBERS_H
#define IGNITION_SESSION_MEMBERS_H

#include <stddef.h>
#include <sys/types.h>

void session_signal(pid_t session, int signal_number);
size_t session_count(pid_t session);

#endif
