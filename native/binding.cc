// The addon: hands calls to the reactor and its reports to JavaScript. No connection logic lives
// here.
#include <napi.h>

#include <array>
#include <cstring>
#include <vector>

extern "C" {
#include "reactor.h"
#include "tsc.h"
}

namespace {

constexpr size_t REPORTS_PER_CALL = 256;
// Chunks smaller than this are cheaper to copy than to hand over with a finalizer.
constexpr uint32_t COPIED_CHUNK_BYTES = 4096;

// One record is six u32 words. Kinds, in the low byte of the first word:
//   FRAME   kind | type << 8, id, stream, buffer, offset, size
//   OPENED  kind, id
//   DRAINED kind, id
//   ENDED   kind | conn_end << 8, id, errno, detail
enum record_kind : uint32_t { FRAME, OPENED, DRAINED, ENDED };
using record = std::array<uint32_t, 6>;

class Carrier;
void deliver(Napi::Env env, Napi::Function callback, Carrier *carrier, void *);
using Notifier = Napi::TypedThreadSafeFunction<Carrier, void, deliver>;

// The state of one JavaScript environment. All members belong to its thread.
class Carrier {
  public:
    ~Carrier() {
        stop();
    }

    // Returns 0 or an errno.
    int start(Napi::Env env, Napi::Function onReports) {
        notifier = Notifier::New(env, onReports, "ignition_vsock", 0, 1, this);
        notifier.Unref(env);
        int error = 0;
        reactor = reactor_start(notify, this, &error);
        if (reactor == nullptr)
            notifier.Release();
        return error;
    }

    // Joins the I/O thread; nothing is called after it.
    void stop() {
        if (reactor == nullptr)
            return;
        reactor_stop(reactor);
        reactor = nullptr;
        notifier.Release();
    }

    // The process stays alive while a connection is open.
    void opened(Napi::Env env) {
        if (connectionCount++ == 0)
            notifier.Ref(env);
    }

    void ended(Napi::Env env) {
        if (--connectionCount == 0)
            notifier.Unref(env);
    }

    struct reactor *reactor = nullptr;

  private:
    static void notify(void *context) {
        // The queue is unbounded but holds one call: the reactor notifies once until reports are
        // taken.
        static_cast<Carrier *>(context)->notifier.NonBlockingCall();
    }

    Notifier notifier;
    uint32_t connectionCount = 0;
};

Napi::Value toArrayBuffer(Napi::Env env, struct chunk *chunk) {
    if (chunk->used < COPIED_CHUNK_BYTES || chunk->used < chunk->capacity / 2) {
        Napi::ArrayBuffer copy = Napi::ArrayBuffer::New(env, chunk->used);
        if (chunk->used > 0)
            memcpy(copy.Data(), chunk->bytes, chunk->used);
        chunk_free(chunk);
        return copy;
    }
    return Napi::ArrayBuffer::New(
        env, chunk->bytes, chunk->used,
        [](Napi::Env, void *, struct chunk *owned) { chunk_free(owned); }, chunk);
}

void appendReport(Napi::Env env, struct conn_report &report, std::vector<record> &records,
                  Napi::Array buffers) {
    if (report.opened)
        records.push_back({OPENED, report.id});
    if (report.drained)
        records.push_back({DRAINED, report.id});
    const uint32_t firstBuffer = buffers.Length();
    for (size_t at = 0; at < report.frames.chunk_count; at++) {
        buffers.Set(firstBuffer + static_cast<uint32_t>(at),
                    toArrayBuffer(env, report.frames.chunks[at]));
        report.frames.chunks[at] = nullptr;
    }
    for (size_t at = 0; at < report.frames.frame_count; at++) {
        const struct frame &frame = report.frames.frames[at];
        records.push_back({FRAME | static_cast<uint32_t>(frame.type) << 8, report.id, frame.stream,
                           firstBuffer + frame.chunk, frame.offset, frame.size});
    }
    frame_batch_clear(&report.frames);
    if (report.end != CONN_END_NONE)
        records.push_back({ENDED | static_cast<uint32_t>(report.end) << 8, report.id,
                           report.end_errno, report.end_detail});
}

// One call into JavaScript for everything that happened since the last one.
void deliver(Napi::Env env, Napi::Function callback, Carrier *carrier, void *) {
    if (env == nullptr || callback.IsEmpty() || carrier->reactor == nullptr)
        return;
    static thread_local std::array<struct conn_report, REPORTS_PER_CALL> reports;
    const size_t count = reactor_take(carrier->reactor, reports.data(), reports.size());
    if (count == 0)
        return;
    std::vector<record> records;
    Napi::Array buffers = Napi::Array::New(env);
    for (size_t at = 0; at < count; at++) {
        appendReport(env, reports[at], records, buffers);
        if (reports[at].end != CONN_END_NONE)
            carrier->ended(env);
    }
    Napi::Uint32Array words =
        Napi::Uint32Array::New(env, records.size() * std::tuple_size<record>::value);
    memcpy(words.Data(), records.data(), records.size() * sizeof(record));
    callback.Call({words, buffers});
}

Carrier *carrierOf(const Napi::CallbackInfo &info) {
    return static_cast<Carrier *>(info.Data());
}

uint32_t idOf(const Napi::CallbackInfo &info) {
    return info[0].As<Napi::Number>().Uint32Value();
}

struct span {
    void *data = nullptr;
    size_t size = 0;
};

// The bytes of a Uint8Array, valid during this call; nothing for null.
span bytesOf(const Napi::CallbackInfo &info, size_t index) {
    span bytes;
    bool isTypedArray = false;
    if (napi_is_typedarray(info.Env(), info[index], &isTypedArray) == napi_ok && isTypedArray)
        napi_get_typedarray_info(info.Env(), info[index], nullptr, &bytes.size, &bytes.data,
                                 nullptr, nullptr);
    return bytes;
}

// start(onReports: (words: Uint32Array, buffers: ArrayBuffer[]) => void): errno, once per
// environment
Napi::Value start(const Napi::CallbackInfo &info) {
    return Napi::Number::New(info.Env(),
                             carrierOf(info)->start(info.Env(), info[0].As<Napi::Function>()));
}

// connect(path, port, deadlineMs, highWaterBytes): id, or -errno
Napi::Value connect(const Napi::CallbackInfo &info) {
    const std::string path = info[0].As<Napi::String>().Utf8Value();
    const uint32_t port = info[1].As<Napi::Number>().Uint32Value();
    const uint32_t deadlineMs = info[2].As<Napi::Number>().Uint32Value();
    const uint32_t highWaterBytes = info[3].As<Napi::Number>().Uint32Value();
    int error = 0;
    Carrier *carrier = carrierOf(info);
    const uint32_t id =
        reactor_connect(carrier->reactor, path.c_str(), port, deadlineMs, highWaterBytes, &error);
    if (id == 0)
        return Napi::Number::New(info.Env(), -error);
    carrier->opened(info.Env());
    return Napi::Number::New(info.Env(), id);
}

// send(id, head: Uint8Array, payload: Uint8Array | null): bytes queued, or -errno
Napi::Value send(const Napi::CallbackInfo &info) {
    const span head = bytesOf(info, 1), payload = bytesOf(info, 2);
    const int64_t pending = reactor_send(carrierOf(info)->reactor, idOf(info), head.data, head.size,
                                         payload.data, payload.size);
    return Napi::Number::New(info.Env(), static_cast<double>(pending));
}

// pending(id): bytes queued
Napi::Value pending(const Napi::CallbackInfo &info) {
    return Napi::Number::New(
        info.Env(), static_cast<double>(reactor_pending(carrierOf(info)->reactor, idOf(info))));
}

// setPaused(id, paused)
void setPaused(const Napi::CallbackInfo &info) {
    reactor_set_paused(carrierOf(info)->reactor, idOf(info), info[1].As<Napi::Boolean>());
}

// close(id): no report follows
void closeConnection(const Napi::CallbackInfo &info) {
    if (reactor_close(carrierOf(info)->reactor, idOf(info)))
        carrierOf(info)->ended(info.Env());
}

// tscKhz(): takes 30 ms; 0 where there is no such counter
Napi::Value tscKhz(const Napi::CallbackInfo &info) {
    return Napi::Number::New(info.Env(), tsc_khz());
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    Carrier *carrier = new Carrier();
    env.SetInstanceData(carrier); // deletes it at the end of the environment
    env.AddCleanupHook([carrier] { carrier->stop(); });
    exports.Set("start", Napi::Function::New(env, start, "start", carrier));
    exports.Set("connect", Napi::Function::New(env, connect, "connect", carrier));
    exports.Set("send", Napi::Function::New(env, send, "send", carrier));
    exports.Set("pending", Napi::Function::New(env, pending, "pending", carrier));
    exports.Set("setPaused", Napi::Function::New(env, setPaused, "setPaused", carrier));
    exports.Set("close", Napi::Function::New(env, closeConnection, "close", carrier));
    exports.Set("tscKhz", Napi::Function::New(env, tscKhz, "tscKhz", carrier));
    return exports;
}

} // namespace

NODE_API_MODULE(ignition_vsock, init)
