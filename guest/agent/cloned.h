// CLONED: gives this guest its own randomness, time, name and machine id. RELEASE: it goes on after
// a pause as what it was.
#ifndef IGNITION_CLONED_H
#define IGNITION_CLONED_H

#include "wire/json.h"
#include "wire/link.h"

// Writes the names a clone replaces. On an overlay the first write to a file copies it up, which
// takes far longer than all later ones: it happens before the snapshot.
void cloned_name_base(void);
void cloned_answer(struct link *link, uint32_t stream, const struct json_object *request);
void release_answer(struct link *link, uint32_t stream, const struct json_object *request);

#endif
