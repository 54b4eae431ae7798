// What each frame type does.
#ifndef IGNITION_DISPATCH_H
#define IGNITION_DISPATCH_H

#include "link.h"

enum { AGENT_PROTOCOL = 1 };

void dispatch_frame(struct link *link, const struct frame *frame);

#endif
