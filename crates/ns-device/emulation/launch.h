// What crosses between Rust and the emulation: one launch, as plain data. Mirrored by
// `EmulatedLaunch` of src/kernel.rs.
#ifndef NS_EMULATION_LAUNCH_H
#define NS_EMULATION_LAUNCH_H
#include <cstdint>

namespace emulation {

enum Schedule : uint32_t {
    ASCENDING = 0,  // fibers, lane 0 first
    DESCENDING = 1, // fibers, the last lane first
    SHUFFLED = 2,   // fibers, another order after every barrier, drawn from the seed
    THREADS = 3,    // a thread per lane, blocks one after another: for ThreadSanitizer
};

// A broken rule (divergent barrier, write past shared memory). With a Failure to write to, a launch
// on fibers stops and leaves its message there; without one, and on threads, the process aborts
// with the message on stderr.
struct Failure {
    uint32_t failed;
    char message[508];
};

struct Launch {
    uint32_t blocks, lanes;
    uint32_t shared_reals;
    uint32_t schedule;     // Schedule
    uint64_t seed;         // of the shuffled order
    uint32_t host_threads; // that blocks are spread over, on fibers; 0 and 1 mean the caller's alone
    uint32_t n_arguments;  // 0: not checked
    Failure* failure;
    const uint64_t* argument_bytes; // of each argument: a struct's size, or 0 for a buffer; read if n_arguments isn't 0
};

// A kernel as exported: `arguments` holds, in order, the address of each CONSTANTS struct and of
// each buffer's first item.
using Kernel = void(const Launch*, void* const* arguments);

} // namespace emulation
#endif
