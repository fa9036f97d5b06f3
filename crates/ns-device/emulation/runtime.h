// Runs kernels of the dialect on the host: lanes are fibers or threads, with real barriers and
// strict rules.
//
// A client's one file of kernels, compiled once per precision (-DREAL=double -DPRECISION=f64, then
// float and f32):
//
//   #include "runtime.h"
//   namespace KERNELS {
//   #include "dialect.h"
//   #include "fit.h"
//   EXPORT(fit)   // extern "C" void fit_f64(const emulation::Launch*, void* const* arguments)
//   }
//
// What is checked while a kernel runs: every lane of a block reaches the same BARRIER() (by file
// and line), every lane of a warp the same SHUFFLE_XOR; nothing is written past shared memory (a
// guard behind it; AddressSanitizer where it is on, which sees reads too); shared memory starts as
// NaN, so reads of unwritten
// memory show.
#ifndef NS_EMULATION_H
#define NS_EMULATION_H
#include "launch.h"
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace emulation {

struct Block; // of lanes that run together; runtime.cpp's

// What a kernel sees of the lane that it is.
struct Lane {
    uint32_t lane, block, n_lanes, n_blocks;
    void* shared;
    Block* running;
    uint32_t n_shuffles;
};

// A kernel with its arguments bound, as the runtime calls it for each lane.
struct Body {
    void (*call)(void* const* arguments, Lane& lane);
    void* const* arguments;
};

void barrier(Lane& lane, const char* file, int line);
// Gives `bytes` (8 at most) of `value` to the warp and returns what lane `from` gave.
void exchange(Lane& lane, uint32_t from, void* value, size_t bytes, const char* file, int line);
void run(const Launch& launch, const Body& body, size_t shared_bytes);
// Checks what a launch passes against what the kernel takes: the number of arguments, each struct's
// size.
bool matches(const Launch& launch, const size_t* constants_bytes, size_t n);

template <class T> T shuffle_xor(Lane& lane, T value, uint32_t mask, const char* file, int line) {
    static_assert(std::is_arithmetic<T>::value, "a shuffle moves a real or a uint");
    exchange(lane, lane.lane ^ mask, &value, sizeof(T), file, line);
    return value;
}

template <class T> struct Argument;
template <class T> struct Argument<const T&> {
    static const size_t constants = sizeof(T);
    static const T& from(void* address) { return *static_cast<const T*>(address); }
};
template <class T> struct Argument<T*> {
    static const size_t constants = 0;
    static T* from(void* address) { return static_cast<T*>(address); }
};

// Calls `kernel` for one lane with its arguments unpacked by their types; the last parameter is the
// lane.
template <auto kernel> struct Unpacked;
template <class... P, void (*kernel)(P...)> struct Unpacked<kernel> {
    template <size_t... index>
    static void with(void* const* arguments, Lane& lane, std::index_sequence<index...>) {
        kernel(Argument<std::tuple_element_t<index, std::tuple<P...>>>::from(arguments[index])..., lane);
    }
    template <size_t... index> static bool matches(const Launch& launch, std::index_sequence<index...>) {
        const size_t bytes[] = {Argument<std::tuple_element_t<index, std::tuple<P...>>>::constants...};
        return emulation::matches(launch, bytes, sizeof...(index));
    }
    static bool matches(const Launch& launch) { return matches(launch, std::make_index_sequence<sizeof...(P) - 1>()); }
    static void call(void* const* arguments, Lane& lane) {
        with(arguments, lane, std::make_index_sequence<sizeof...(P) - 1>());
    }
};

// A program that finds kernels by name (replay.cpp) keeps the list; elsewhere nothing is listed.
struct Listed {
    const char* name;
    Kernel* kernel;
    Listed* next;
    static Listed*& first() {
        static Listed* list = nullptr;
        return list;
    }
    Listed(const char* name_, Kernel* kernel_) : name(name_), kernel(kernel_), next(first()) { first() = this; }
};

} // namespace emulation

#define NS_JOIN_(a, b) a##b
#define NS_JOIN(a, b) NS_JOIN_(a, b)
#define NS_TEXT_(a) #a
#define NS_TEXT(a) NS_TEXT_(a)
#define NS_EXPORTED(kernel) NS_JOIN(NS_JOIN(kernel, _), PRECISION)

#ifdef NS_EMULATION_LIST
#define NS_LIST(kernel)                                                                                                \
    static emulation::Listed NS_JOIN(listed_, kernel)(NS_TEXT(NS_EXPORTED(kernel)), NS_EXPORTED(kernel));
#else
#define NS_LIST(kernel)
#endif

// The namespace of one precision's kernels: structs of reals differ between the two.
#define KERNELS NS_JOIN(kernels_, PRECISION)

#define EXPORT(kernel)                                                                                                 \
    extern "C" void NS_EXPORTED(kernel)(const emulation::Launch* launch, void* const* arguments);                      \
    extern "C" void NS_EXPORTED(kernel)(const emulation::Launch* launch, void* const* arguments) {                     \
        if (!emulation::Unpacked<&kernel>::matches(*launch)) return;                                                   \
        const emulation::Body body = {emulation::Unpacked<&kernel>::call, arguments};                                  \
        emulation::run(*launch, body, size_t(launch->shared_reals) * sizeof(real));                                    \
    }                                                                                                                  \
    NS_LIST(kernel)

#endif
