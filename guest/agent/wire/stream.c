// The streams of a link.
#include "link.h"

struct stream *link_find(struct link *link, uint32_t id) {
    for (size_t i = 0; i < LINK_MAX_STREAMS; i++)
        if (link->streams[i] != NULL && link->streams[i]->id == id)
            return link->streams[i];
    return NULL;
}

bool stream_attach(struct stream *stream, struct link *link, uint32_t id,
                   const struct stream_ops *ops) {
    for (size_t i = 0; i < LINK_MAX_STREAMS; i++) {
        if (link->streams[i] == NULL) {
            *stream = (struct stream){.id = id, .link = link, .ops = ops};
            link->streams[i] = stream;
            return true;
        }
    }
    return false;
}

void stream_detach(struct stream *stream) {
    for (size_t i = 0; i < LINK_MAX_STREAMS; i++)
        if (stream->link->streams[i] == stream)
            stream->link->streams[i] = NULL;
    stream->link = NULL;
}
