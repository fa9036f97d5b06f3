// Replaces OpenCL's library in tests, so that the calls of the OpenCL backend can be made, and its
// failures provoked, without a driver.
//
// Kernels run by emulation, found by their names in the text that is "compiled", at once. A handle
// that does not exist, a copy outside of a buffer, an argument that was not set, too much local
// memory: each is an error, as from a driver. STAND_IN_PLATFORMS and STAND_IN_DEVICES say how many
// there are (one of each by default); STAND_IN_SINGLE: without double precision; STAND_IN_REFUSE:
// no program compiles; STAND_IN_CRASH names a kernel that fails, and takes the device along;
// STAND_IN_WRONG one that computes wrongly; STAND_IN_LANES: the widest block of a kernel;
// STAND_IN_OLD_BINARIES: programs in the cache are refused; STAND_IN_OLD: of version 1.1.
#include "runtime.h"
#include <cstdlib>
#include <deque>
#include <set>
#include <string>
#include <vector>

namespace {

enum Status : int {
    SUCCESS = 0, DEVICE_NOT_FOUND = -1, ALLOCATION_FAILURE = -4, OUT_OF_RESOURCES = -5, BUILD_FAILURE = -11,
    INVALID_VALUE = -30, INVALID_COMMAND_QUEUE = -36, INVALID_MEM_OBJECT = -38, INVALID_BINARY = -42,
    INVALID_KERNEL_NAME = -46, INVALID_ARG_INDEX = -49, INVALID_KERNEL_ARGS = -52, INVALID_WORK_GROUP_SIZE = -54,
    NO_PLATFORM = -1001,
};

const size_t MEMORY = 64 << 20, LARGEST = 48 << 20, LOCAL = 32 << 10;

struct Memory {
    std::vector<unsigned long long> words;
    size_t bytes;
};
struct Program {
    std::string source, options, log;
};
struct Argument {
    Memory* memory = nullptr;
    size_t local = 0;
    bool is_set = false;
};
struct Kernel {
    std::string name;
    emulation::Kernel* function = nullptr;
    size_t real_bytes = 8;
    std::vector<bool> constants;
    std::vector<Argument> arguments;
};
struct Event {
    int status;
    unsigned long long start, end;
};

std::set<Memory*> memories;
std::deque<Program> programs;
std::deque<Kernel> kernels;
int platform_marker, devices_marker[8], context_marker, queue_marker;
size_t used = 0;
bool is_lost = false;
unsigned long long clock_ns = 0;

const char* setting(const char* name) { return std::getenv(name); }
unsigned count(const char* name) { return setting(name) ? unsigned(std::atoi(setting(name))) : 1u; }

int give(const void* value, size_t bytes, size_t room, void* to, size_t* needed) {
    if (needed) *needed = bytes;
    if (to && room < bytes) return INVALID_VALUE;
    if (to) std::memcpy(to, value, bytes);
    return SUCCESS;
}
int give(const std::string& text, size_t room, void* to, size_t* needed) { return give(text.c_str(), text.size() + 1, room, to, needed); }
template <class T> int number(T value, size_t room, void* to, size_t* needed) { return give(&value, sizeof value, room, to, needed); }

int done(int status, void** event) {
    if (event) *event = new Event{status, clock_ns, clock_ns + 1000};
    clock_ns += 1000;
    return SUCCESS;
}
bool holds(Memory* memory, size_t offset, size_t bytes) { return memories.count(memory) && offset + bytes <= memory->bytes; }

} // namespace

#define API extern "C" __attribute__((visibility("default")))
using u32 = unsigned;
using u64 = unsigned long long;

API int clGetPlatformIDs(u32 room, void** platforms, u32* n) {
    const u32 there = count("STAND_IN_PLATFORMS");
    if (n) *n = there;
    if (there == 0) return NO_PLATFORM;
    for (u32 i = 0; platforms && i < there && i < room; ++i) platforms[i] = &platform_marker;
    return SUCCESS;
}
API int clGetPlatformInfo(void*, u32, size_t room, void* to, size_t* needed) { return give(std::string("stand-in"), room, to, needed); }
API int clGetDeviceIDs(void*, u64, u32 room, void** devices, u32* n) {
    const u32 there = count("STAND_IN_DEVICES");
    if (n) *n = there;
    if (there == 0) return DEVICE_NOT_FOUND;
    for (u32 i = 0; devices && i < there && i < room; ++i) devices[i] = &devices_marker[i];
    return SUCCESS;
}
API int clGetDeviceInfo(void* device, u32 what, size_t room, void* to, size_t* needed) {
    const bool is_single = setting("STAND_IN_SINGLE");
    switch (what) {
    case 0x102B: return give("device " + std::to_string(static_cast<int*>(device) - devices_marker), room, to, needed);
    case 0x102C: return give(std::string("vendor"), room, to, needed);
    case 0x102D: return give(std::string("1.0"), room, to, needed);
    case 0x102F: return give(std::string(setting("STAND_IN_OLD") ? "OpenCL 1.1 stand-in" : "OpenCL 1.2 stand-in"), room, to, needed);
    case 0x1030: return give(std::string(is_single ? "cl_khr_icd" : "cl_khr_icd cl_khr_fp64"), room, to, needed);
    case 0x1000: return number<u64>(4, room, to, needed);
    case 0x1001: return number<u32>(setting("STAND_IN_NVIDIA") ? 0x10de : 0x1234, room, to, needed);
    case 0x1004: return number<size_t>(1024, room, to, needed);
    case 0x1010: return number<u64>(LARGEST, room, to, needed);
    case 0x101F: return number<u64>(MEMORY, room, to, needed);
    case 0x1023: return number<u64>(LOCAL, room, to, needed);
    case 0x101B: return number<u64>(0xbf, room, to, needed);
    case 0x1032: return number<u64>(is_single ? 0 : 0x3f, room, to, needed);
    default: return number<u32>(1, room, to, needed);
    }
}
API void* clCreateContext(const void*, u32, void* const*, void*, void*, int* status) { return *status = SUCCESS, &context_marker; }
API int clReleaseContext(void*) { return SUCCESS; }
API void* clCreateCommandQueue(void*, void*, u64, int* status) { return *status = SUCCESS, &queue_marker; }
API int clReleaseCommandQueue(void*) { return SUCCESS; }
API int clFlush(void*) { return SUCCESS; }
API int clFinish(void*) { return is_lost ? INVALID_COMMAND_QUEUE : SUCCESS; }

API void* clCreateBuffer(void*, u64 flags, size_t bytes, void* host, int* status) {
    if (bytes == 0 || bytes > LARGEST || used + bytes > MEMORY) return *status = bytes ? ALLOCATION_FAILURE : INVALID_VALUE, nullptr;
    auto* memory = new Memory{std::vector<unsigned long long>((bytes + 7) / 8, ~0ull), bytes};
    if (flags & (1 << 5)) std::memcpy(memory->words.data(), host, bytes);
    memories.insert(memory);
    used += bytes;
    return *status = SUCCESS, memory;
}
API int clReleaseMemObject(void* handle) {
    auto* memory = static_cast<Memory*>(handle);
    if (!memories.erase(memory)) return INVALID_MEM_OBJECT;
    used -= memory->bytes;
    delete memory;
    return SUCCESS;
}
API int clEnqueueFillBuffer(void*, void* handle, const void* pattern, size_t, size_t offset, size_t bytes, u32, void*, void** event) {
    auto* memory = static_cast<Memory*>(handle);
    if (is_lost || !holds(memory, offset, bytes)) return is_lost ? INVALID_COMMAND_QUEUE : INVALID_VALUE;
    std::memset(reinterpret_cast<char*>(memory->words.data()) + offset, *static_cast<const char*>(pattern), bytes);
    return done(SUCCESS, event);
}
API int clEnqueueWriteBuffer(void*, void* handle, u32, size_t offset, size_t bytes, const void* from, u32, void*, void** event) {
    auto* memory = static_cast<Memory*>(handle);
    if (is_lost || !holds(memory, offset, bytes)) return is_lost ? INVALID_COMMAND_QUEUE : INVALID_VALUE;
    std::memcpy(reinterpret_cast<char*>(memory->words.data()) + offset, from, bytes);
    return done(SUCCESS, event);
}
API int clEnqueueReadBuffer(void*, void* handle, u32, size_t offset, size_t bytes, void* to, u32, void*, void** event) {
    auto* memory = static_cast<Memory*>(handle);
    if (is_lost || !holds(memory, offset, bytes)) return is_lost ? INVALID_COMMAND_QUEUE : INVALID_VALUE;
    std::memcpy(to, reinterpret_cast<char*>(memory->words.data()) + offset, bytes);
    return done(SUCCESS, event);
}
API int clEnqueueMarkerWithWaitList(void*, u32, void*, void** event) { return done(SUCCESS, event); }
API int clWaitForEvents(u32, void* const*) { return SUCCESS; }
API int clReleaseEvent(void* event) { return delete static_cast<Event*>(event), SUCCESS; }
API int clGetEventInfo(void* event, u32, size_t room, void* to, size_t* needed) { return number(static_cast<Event*>(event)->status, room, to, needed); }
API int clGetEventProfilingInfo(void* event, u32 what, size_t room, void* to, size_t* needed) {
    return number(what == 0x1283 ? static_cast<Event*>(event)->end : static_cast<Event*>(event)->start, room, to, needed);
}

API void* clCreateProgramWithSource(void*, u32 n, const char** texts, const size_t* lengths, int* status) {
    Program program;
    for (u32 i = 0; i < n; ++i) program.source += lengths ? std::string(texts[i], lengths[i]) : texts[i];
    programs.push_back(program);
    return *status = SUCCESS, &programs.back();
}
API void* clCreateProgramWithBinary(void*, u32, void* const*, const size_t* lengths, const unsigned char** binaries, int*, int* status) {
    const std::string binary(reinterpret_cast<const char*>(binaries[0]), lengths[0]);
    if (binary.rfind("compiled ", 0) != 0 || setting("STAND_IN_OLD_BINARIES")) return *status = INVALID_BINARY, nullptr;
    programs.push_back({binary.substr(9), "", ""});
    return *status = SUCCESS, &programs.back();
}
API int clReleaseProgram(void*) { return SUCCESS; }
API int clBuildProgram(void* handle, u32, void* const*, const char* options, void*, void*) {
    auto* program = static_cast<Program*>(handle);
    program->options = options;
    const bool is_refused = setting("STAND_IN_REFUSE") || program->source.find("KERNEL(") == std::string::npos;
    program->log = is_refused ? "line 1: not a kernel" : "compiled by the stand-in";
    return is_refused ? BUILD_FAILURE : SUCCESS;
}
API int clGetProgramBuildInfo(void* program, void*, u32, size_t room, void* to, size_t* needed) { return give(static_cast<Program*>(program)->log, room, to, needed); }
API int clGetProgramInfo(void* handle, u32 what, size_t room, void* to, size_t* needed) {
    const std::string binary = "compiled " + static_cast<Program*>(handle)->source;
    if (what == 0x1165) return number<size_t>(binary.size(), room, to, needed);
    if (what == 0x1166) return std::memcpy(*static_cast<void**>(to), binary.data(), binary.size()), SUCCESS;
    return INVALID_VALUE;
}

API void* clCreateKernel(void* handle, const char* name, int* status) {
    const auto& program = *static_cast<Program*>(handle);
    const size_t at = program.source.find("\nKERNEL(" + std::string(name) + ")(");
    if (at == std::string::npos) return *status = INVALID_KERNEL_NAME, nullptr;
    const std::string head = program.source.substr(at, program.source.find(" LANES)", at) - at);
    Kernel kernel;
    kernel.name = name;
    for (size_t i = head.find(")(") + 1; i < head.size(); ++i) {
        const bool is_constants = head.compare(i, 10, "CONSTANTS(") == 0;
        const bool is_memory = head.compare(i, 3, "IN(") == 0 || head.compare(i, 4, "OUT(") == 0;
        if (is_constants || is_memory) kernel.constants.push_back(is_constants);
    }
    kernel.arguments.resize(kernel.constants.size() + 2);
    const bool is_double = program.options.find("-DNS_DOUBLE") != std::string::npos;
    kernel.real_bytes = is_double ? 8 : 4;
    const std::string symbol = kernel.name + (is_double ? "_f64" : "_f32");
    for (emulation::Listed* listed = emulation::Listed::first(); listed; listed = listed->next)
        if (symbol == listed->name) kernel.function = listed->kernel;
    kernels.push_back(kernel);
    return *status = kernel.function ? SUCCESS : INVALID_KERNEL_NAME, &kernels.back();
}
API int clReleaseKernel(void*) { return SUCCESS; }
API int clGetKernelInfo(void* kernel, u32, size_t room, void* to, size_t* needed) { return number<u32>(u32(static_cast<Kernel*>(kernel)->arguments.size()), room, to, needed); }
API int clGetKernelWorkGroupInfo(void*, void*, u32, size_t room, void* to, size_t* needed) {
    return number<size_t>(setting("STAND_IN_LANES") ? count("STAND_IN_LANES") : 256, room, to, needed);
}
API int clSetKernelArg(void* handle, u32 index, size_t bytes, const void* value) {
    auto* kernel = static_cast<Kernel*>(handle);
    if (index >= kernel->arguments.size()) return INVALID_ARG_INDEX;
    Argument& argument = kernel->arguments[index];
    argument.is_set = true;
    if (index >= kernel->constants.size()) return argument.local = bytes, value ? INVALID_VALUE : SUCCESS;
    argument.memory = *static_cast<Memory* const*>(value);
    return memories.count(argument.memory) ? SUCCESS : INVALID_MEM_OBJECT;
}
API int clEnqueueNDRangeKernel(void*, void* handle, u32, const size_t*, const size_t* items, const size_t* lanes, u32, void*, void** event) {
    auto& kernel = *static_cast<Kernel*>(handle);
    if (is_lost) return INVALID_COMMAND_QUEUE;
    if (*lanes > (setting("STAND_IN_LANES") ? count("STAND_IN_LANES") : 256) || *items % *lanes) return INVALID_WORK_GROUP_SIZE;
    size_t local = 0;
    std::vector<void*> arguments;
    std::vector<uint64_t> bytes;
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
        if (!kernel.arguments[i].is_set) return INVALID_KERNEL_ARGS;
        local += kernel.arguments[i].local;
        if (i >= kernel.constants.size()) continue;
        if (!memories.count(kernel.arguments[i].memory)) return INVALID_KERNEL_ARGS;
        arguments.push_back(kernel.arguments[i].memory->words.data());
        bytes.push_back(kernel.constants[i] ? kernel.arguments[i].memory->bytes : 0);
    }
    if (local > LOCAL || kernel.arguments.back().local < *lanes * kernel.real_bytes) return OUT_OF_RESOURCES;
    const char* crash = setting("STAND_IN_CRASH");
    if (crash && kernel.name == crash) return is_lost = true, done(OUT_OF_RESOURCES, event);
    emulation::Failure failure = {};
    emulation::Launch launch = {};
    launch.blocks = uint32_t(*items / *lanes);
    launch.lanes = uint32_t(*lanes);
    launch.shared_reals = uint32_t(kernel.arguments[kernel.constants.size()].local / kernel.real_bytes);
    launch.host_threads = 1;
    launch.seed = 1;
    launch.n_arguments = uint32_t(arguments.size());
    launch.failure = &failure;
    launch.argument_bytes = bytes.data();
    kernel.function(&launch, arguments.data());
    if (failure.failed) return std::fprintf(stderr, "%s\n", failure.message), is_lost = true, done(OUT_OF_RESOURCES, event);
    const char* wrong = setting("STAND_IN_WRONG");
    if (wrong && kernel.name == wrong) std::memset(kernel.arguments[kernel.constants.size() - 1].memory->words.data(), 0, 8);
    return done(SUCCESS, event);
}
