// GET: a range of a file, as fast as the host takes it.
#ifndef IGNITION_GET_H
#define IGNITION_GET_H

#include "../wire/json.h"
#include "../wire/link.h"

void get_open(struct link *link, uint32_t stream, const struct json_object *request);

#endif
