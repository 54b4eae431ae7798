// PUT: a file from the host, complete or not at all.
#ifndef IGNITION_PUT_H
#define IGNITION_PUT_H

#include "../wire/json.h"
#include "../wire/link.h"

void put_open(struct link *link, uint32_t stream, const struct json_object *request);

#endif
