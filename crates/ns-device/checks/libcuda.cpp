// Replaces NVIDIA's driver library in tests, so that the calls of the CUDA backend can be made, and
// checked against its rules, without one.
//
// Kernels run by emulation, found by the names in the PTX that is "compiled". A stream is really
// asynchronous: copies and kernels happen when the stream is waited for, with whatever is then in
// host memory. A call without a current context, a copy outside of an allocation, more shared
// memory than was allowed, a wrong handle: each is an error, as from the driver.
// STAND_IN_ELSEWHERE: all memory is another device's; STAND_IN_POOLED: it is of no context.
// STAND_IN_CRASH names a kernel that then crashes; STAND_IN_DEVICES is how many devices there are;
// with STAND_IN_OLD they are of compute capability 6.0, with STAND_IN_FAIL the driver does not
// start.
#include "runtime.h"
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

enum Result : int {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
    INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700,
};

const size_t MEMORY = 64 << 20;
const int MAX_SHARED = 100 << 10;

struct Function {
    std::string name;
    emulation::Kernel* kernel;
    size_t real_bytes;
    std::vector<size_t> constants; // bytes per parameter, 0 for a pointer
    int lanes = 0, shared = 48 << 10;
};
struct Module {
    std::deque<Function> functions;
};
struct Event {
    std::chrono::steady_clock::time_point at;
    bool recorded = false;
};
struct Stream {
    std::vector<std::function<Result()>> work;
};

std::recursive_mutex lock;
std::map<unsigned long long, size_t> allocations;
std::vector<std::unique_ptr<Stream>> streams;
std::vector<std::unique_ptr<Module>> modules;
std::vector<std::unique_ptr<Event>> events;
size_t used = 0;
Result sticky = SUCCESS;
thread_local void* current = nullptr;
int context_marker;

struct Call {
    std::lock_guard<std::recursive_mutex> guard{lock};
    Result state() const { return sticky != SUCCESS ? sticky : current ? SUCCESS : INVALID_CONTEXT; }
};

bool within(unsigned long long address, size_t bytes) {
    auto after = allocations.upper_bound(address);
    if (after == allocations.begin()) return false;
    --after;
    return address + bytes <= after->first + after->second;
}

template <class T> bool known(const std::vector<std::unique_ptr<T>>& all, const void* handle) {
    for (const auto& one : all)
        if (one.get() == handle) return true;
    return false;
}

Result drain(Stream& stream) {
    std::vector<std::function<Result()>> work;
    work.swap(stream.work);
    for (auto& one : work)
        if (sticky == SUCCESS) sticky = one();
    return sticky;
}

Result drain_all() {
    for (auto& stream : streams) drain(*stream);
    return sticky;
}

// Reads a PTX's kernels with their parameters, much as the driver's compiler must.
Result read(const std::string& text, Module& module) {
    if (text.find(".version") == std::string::npos) return INVALID_PTX;
    const bool is_double = text.find("-DREAL=double") != std::string::npos;
    const std::string entry = ".visible .entry ";
    for (size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
        const size_t open = text.find('(', at), close = text.find(')', at);
        Function function;
        function.name = text.substr(at + entry.size(), open - at - entry.size());
        for (size_t parameter = text.find(".param", open); parameter < close; parameter = text.find(".param", parameter + 1)) {
            const size_t end = std::min(text.find(',', parameter), close), bracket = text.find('[', parameter);
            function.constants.push_back(bracket < end ? size_t(std::atoi(text.c_str() + bracket + 1)) : 0);
        }
        const std::string symbol = function.name + (is_double ? "_f64" : "_f32");
        function.real_bytes = is_double ? 8 : 4;
        function.lanes = std::atoi(text.c_str() + text.find(".maxntid", close) + 9);
        for (emulation::Listed* listed = emulation::Listed::first(); listed; listed = listed->next)
            if (symbol == listed->name) function.kernel = listed->kernel;
        module.functions.push_back(function);
    }
    return SUCCESS;
}

} // namespace

#define API extern "C" __attribute__((visibility("default"))) int
using Pointer = unsigned long long;

API cuInit(unsigned) { return std::getenv("STAND_IN_FAIL") ? 804 : SUCCESS; }
API cuDeviceGetCount(int* count) {
    const char* devices = std::getenv("STAND_IN_DEVICES");
    *count = devices ? std::atoi(devices) : 1;
    return SUCCESS;
}
API cuDeviceGet(int* device, int index) {
    int count;
    cuDeviceGetCount(&count);
    *device = index;
    return index < count ? SUCCESS : INVALID_DEVICE;
}
API cuDeviceGetName(char* name, int length, int) {
    std::snprintf(name, size_t(length), "stand-in GPU");
    return SUCCESS;
}
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = MEMORY, SUCCESS; }
API cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
    case 1: *value = 1024; break;
    case 13: *value = 1500000; break;
    case 16: *value = 100; break;
    case 75: *value = std::getenv("STAND_IN_OLD") ? 6 : 9; break;
    case 76: *value = 0; break;
    case 97: *value = MAX_SHARED; break;
    default: *value = 0;
    }
    return SUCCESS;
}
API cuDevicePrimaryCtxRetain(void** context, int) { return *context = &context_marker, SUCCESS; }
API cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
API cuCtxGetCurrent(void** context) { return *context = current, SUCCESS; }
API cuCtxSetCurrent(void* context) { return current = context, SUCCESS; }
API cuGetErrorName(int code, const char** name) {
    static const std::map<int, const char*> names = {{2, "CUDA_ERROR_OUT_OF_MEMORY"}, {218, "CUDA_ERROR_INVALID_PTX"},
                                                     {500, "CUDA_ERROR_NOT_FOUND"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
    return *name = names.count(code) ? names.at(code) : "CUDA_ERROR_OF_THE_STAND_IN", SUCCESS;
}
API cuGetErrorString(int code, const char** text) {
    return *text = code == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "an error", SUCCESS;
}

API cuStreamCreate(void** stream, unsigned) {
    Call call;
    if (call.state()) return call.state();
    streams.emplace_back(new Stream);
    return *stream = streams.back().get(), SUCCESS;
}
API cuStreamSynchronize(void* stream) {
    Call call;
    if (call.state()) return call.state();
    return known(streams, stream) ? drain(*static_cast<Stream*>(stream)) : INVALID_HANDLE;
}
API cuStreamDestroy_v2(void* stream) {
    Call call;
    return known(streams, stream) ? drain(*static_cast<Stream*>(stream)) : INVALID_HANDLE;
}

API cuMemGetInfo_v2(size_t* free, size_t* total) {
    Call call;
    *free = MEMORY - used;
    *total = MEMORY;
    return call.state();
}
API cuMemAlloc_v2(Pointer* address, size_t bytes) {
    Call call;
    if (call.state()) return call.state();
    if (used + bytes > MEMORY) return OUT_OF_MEMORY;
    void* memory = std::malloc(bytes);
    std::memset(memory, 0xff, bytes);
    *address = Pointer(memory);
    allocations[*address] = bytes;
    used += bytes;
    return SUCCESS;
}
API cuMemFree_v2(Pointer address) {
    Call call;
    if (call.state()) return call.state();
    drain_all();
    if (!allocations.count(address)) return INVALID_VALUE;
    used -= allocations[address];
    allocations.erase(address);
    std::free(reinterpret_cast<void*>(address));
    return SUCCESS;
}
API cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, void* stream) {
    Call call;
    if (call.state()) return call.state();
    if (!known(streams, stream)) return INVALID_HANDLE;
    if (!within(to, bytes)) return INVALID_VALUE;
    static_cast<Stream*>(stream)->work.push_back([=] { return std::memset(reinterpret_cast<void*>(to), value, bytes), SUCCESS; });
    return SUCCESS;
}
API cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, void* stream) {
    Call call;
    if (call.state()) return call.state();
    if (!known(streams, stream)) return INVALID_HANDLE;
    if (!within(to, bytes)) return INVALID_VALUE;
    static_cast<Stream*>(stream)->work.push_back([=] { return std::memcpy(reinterpret_cast<void*>(to), from, bytes), SUCCESS; });
    return SUCCESS;
}
API cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, void* stream) {
    Call call;
    if (call.state()) return call.state();
    if (!known(streams, stream)) return INVALID_HANDLE;
    if (!within(from, bytes)) return INVALID_VALUE;
    static_cast<Stream*>(stream)->work.push_back([=] { return std::memcpy(to, reinterpret_cast<void*>(from), bytes), SUCCESS; });
    return SUCCESS;
}

// What is known of an address: 1 its context, 2 that it is a device's, 9 of which one, 11 and 12
// where its allocation begins and how long it is.
API cuPointerGetAttribute(void* value, int attribute, Pointer address) {
    Call call;
    if (call.state()) return call.state();
    if (!within(address, 1)) return INVALID_VALUE;
    const auto allocation = *--allocations.upper_bound(address);
    switch (attribute) {
    case 1: *static_cast<void**>(value) = std::getenv("STAND_IN_POOLED") ? nullptr : &context_marker; break;
    case 2: *static_cast<unsigned*>(value) = 2; break;
    case 9: *static_cast<int*>(value) = std::getenv("STAND_IN_ELSEWHERE") ? 1 : 0; break;
    case 11: *static_cast<Pointer*>(value) = allocation.first; break;
    case 12: *static_cast<size_t*>(value) = allocation.second; break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

API cuModuleLoadDataEx(void** module, const void* image, unsigned n, int* options, void** values) {
    Call call;
    if (call.state()) return call.state();
    std::unique_ptr<Module> loaded(new Module);
    const Result result = read(static_cast<const char*>(image), *loaded);
    for (unsigned i = 0; i < n; ++i)
        if (options[i] == (result ? 5 : 3)) std::strcpy(static_cast<char*>(values[i]), result ? "line 1: not PTX" : "compiled by the stand-in");
    if (result) return result;
    modules.push_back(std::move(loaded));
    return *module = modules.back().get(), SUCCESS;
}
API cuModuleGetFunction(void** function, void* module, const char* name) {
    Call call;
    if (call.state()) return call.state();
    if (!known(modules, module)) return INVALID_HANDLE;
    for (Function& one : static_cast<Module*>(module)->functions)
        if (one.name == name) return *function = &one, SUCCESS;
    return NOT_FOUND;
}
API cuFuncGetAttribute(int* value, int attribute, void* function) {
    *value = attribute == 0 ? static_cast<Function*>(function)->lanes : 0;
    return SUCCESS;
}
API cuFuncSetAttribute(void* function, int attribute, int value) {
    if (attribute != 8 || value > MAX_SHARED) return INVALID_VALUE;
    return static_cast<Function*>(function)->shared = value, SUCCESS;
}
API cuLaunchKernel(void* handle, unsigned blocks, unsigned, unsigned, unsigned lanes, unsigned, unsigned, unsigned shared,
                   void* stream, void** parameters, void**) {
    Call call;
    if (call.state()) return call.state();
    const Function function = *static_cast<Function*>(handle);
    if (!known(streams, stream)) return INVALID_HANDLE;
    if (lanes > unsigned(function.lanes) || shared > unsigned(function.shared)) return INVALID_VALUE;
    std::vector<std::vector<unsigned long long>> constants;
    for (size_t index = 0; index < function.constants.size(); ++index) {
        const size_t bytes = function.constants[index] ? function.constants[index] : 8;
        constants.emplace_back((bytes + 7) / 8);
        std::memcpy(constants.back().data(), parameters[index], bytes);
    }
    static_cast<Stream*>(stream)->work.push_back([=]() mutable {
        const char* crash = std::getenv("STAND_IN_CRASH");
        if (crash && function.name == crash) return ILLEGAL_ADDRESS;
        std::vector<void*> arguments;
        for (size_t index = 0; index < constants.size(); ++index) {
            const bool pointer = function.constants[index] == 0;
            if (pointer && !within(constants[index][0], 1)) return ILLEGAL_ADDRESS;
            arguments.push_back(pointer ? reinterpret_cast<void*>(constants[index][0]) : constants[index].data());
        }
        emulation::Launch launch = {};
        launch.blocks = blocks;
        launch.lanes = lanes;
        launch.shared_reals = uint32_t(shared / function.real_bytes);
        function.kernel(&launch, arguments.data());
        return SUCCESS;
    });
    return SUCCESS;
}

API cuEventCreate(void** event, unsigned) {
    Call call;
    if (call.state()) return call.state();
    events.emplace_back(new Event);
    return *event = events.back().get(), SUCCESS;
}
API cuEventRecord(void* event, void* stream) {
    Call call;
    if (call.state()) return call.state();
    if (!known(events, event) || (stream && !known(streams, stream))) return INVALID_HANDLE;
    Event* recorded = static_cast<Event*>(event);
    // Nothing is ever given to the default stream.
    if (!stream) return recorded->recorded = true, SUCCESS;
    static_cast<Stream*>(stream)->work.push_back([=] {
        recorded->at = std::chrono::steady_clock::now();
        recorded->recorded = true;
        return SUCCESS;
    });
    return SUCCESS;
}
// The stream goes on when the event has happened, which is when all streams have done what they
// were given.
API cuStreamWaitEvent(void* stream, void* event, unsigned) {
    Call call;
    if (call.state()) return call.state();
    if (!known(events, event) || !known(streams, stream)) return INVALID_HANDLE;
    Event* awaited = static_cast<Event*>(event);
    static_cast<Stream*>(stream)->work.push_back([=] { return awaited->recorded ? SUCCESS : drain_all(); });
    return SUCCESS;
}
API cuEventSynchronize(void* event) {
    Call call;
    if (call.state()) return call.state();
    return known(events, event) ? drain_all() : INVALID_HANDLE;
}
API cuEventElapsedTime(float* milliseconds, void* from, void* to) {
    Call call;
    const Event *first = static_cast<Event*>(from), *second = static_cast<Event*>(to);
    if (!first->recorded || !second->recorded) return INVALID_HANDLE;
    *milliseconds = std::chrono::duration<float, std::milli>(second->at - first->at).count();
    return call.state();
}
API cuEventDestroy_v2(void* event) { return known(events, event) ? SUCCESS : INVALID_HANDLE; }
