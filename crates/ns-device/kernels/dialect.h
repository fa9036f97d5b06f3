// The kernel dialect: what a kernel may use, spelled for five front ends (CUDA, Metal, OpenCL C,
// host C++, a check of address spaces).
//
// A kernel's text is written with these names only, so that one text is every device's. The rules:
//   - C as well as C++: no templates, references, members or overloads; a text for several types or
//     sizes is a header that is included for each, with macros for what differs;
//   - no atomics, no recursion, no fast-math; every pointer names its address space (GLOBAL,
//     CONSTANT, SHARED, PRIVATE: a lane's own);
//   - numbers with a point go through R(): R(0.5), never 0.5; R(1) does not compile;
//   - one dynamic shared array of reals, carved by offsets; it holds garbage until it is written;
//   - BARRIER() and SHUFFLE_XOR are reached by every lane of the block;
//   - a buffer is IN or OUT of one launch, not both: IN is read through the read-only cache.
//
//   STRUCT(ScaleLayout) { uint n; real factor; };
//   FN void fill(SHARED real* shared, uint n, real value LANES_PARAM) {
//       for (uint i = LANE; i < n; i += N_LANES) shared[i] = value;
//       BARRIER();
//   }
//   KERNEL(scale)(CONSTANTS(ScaleLayout, layout, 0), IN(real, from, 1), OUT(real, to, 2) LANES) {
//       ENTER(shared);
//       fill(shared, layout->n, layout->factor LANES_ARG);
//       for (uint i = LANE; i < layout->n; i += N_LANES) to[i] = shared[i] * from[i];
//   }
//
// A helper that needs LANE, BARRIER() and the like ends its parameters with LANES_PARAM (no comma
// before it, one parameter at least) and is called with LANES_ARG. CONSTANTS is a pointer to a
// struct of uints and reals, at most 4 KB; pass it on as `CONSTANT ScaleLayout* layout`. Constants
// shared by lanes at file scope: `TABLE(real, NAME)[2] = {R(1.0), R(2.0)};`, passed on as
// `CONSTANT real*`.
// Functions are copied into their callers; a loop whose body is too large to be written out for
// each of its few rounds is `ROLLED for (...)`, one that has to be, because it counts through an
// array of its lane's own, `UNROLLED`. A condition of the whole block with a barrier behind it is
// `WHERE (condition)`, without `else`, `break` or `return`, and no function with barriers returns
// before its end: drivers that run the lanes of a block in loops copy what follows such a branch.
#ifndef NS_DIALECT_H
#define NS_DIALECT_H

// Lanes that run in lockstep: an NVIDIA warp, an Apple SIMD group.
#define WARP 32u
// The widest block a kernel is compiled for; define it before this file for wider ones.
#ifndef MAX_LANES
#define MAX_LANES 128
#endif

#if defined(__METAL_VERSION__)
// ---- Metal Shading Language: float only, compiled at run time in safe math mode.
#include <metal_stdlib>
#pragma clang fp contract(off)
using namespace metal;
typedef float real;
#define STRUCT(name) struct name
#define GLOBAL device
#define CONSTANT constant
#define SHARED threadgroup
#define PRIVATE thread
#define FN static inline
#define WHERE(condition) if (condition)
#define ROLLED _Pragma("unroll 1")
#define UNROLLED _Pragma("unroll")
#define TABLE(type, name) constant type name
#ifndef ATTRIBUTE_
#define ATTRIBUTE_(name) [[name]]
#endif
struct Lanes_ {
    uint lane, block, n_lanes, n_blocks;
};
#define KERNEL(name) kernel void name
#define CONSTANTS(type, name, index) constant type* name ATTRIBUTE_(buffer(index))
#define IN(type, name, index) const device type* name ATTRIBUTE_(buffer(index))
#define OUT(type, name, index) device type* name ATTRIBUTE_(buffer(index))
#define LANES                                                                                      \
    , threadgroup real *shared_ ATTRIBUTE_(threadgroup(0)),                                        \
        uint lane_ ATTRIBUTE_(thread_position_in_threadgroup),                                     \
        uint block_ ATTRIBUTE_(threadgroup_position_in_grid),                                      \
        uint n_lanes_ ATTRIBUTE_(threads_per_threadgroup),                                         \
        uint n_blocks_ ATTRIBUTE_(threadgroups_per_grid)
#define ENTER(shared)                                                                              \
    const Lanes_ lanes_ = {lane_, block_, n_lanes_, n_blocks_};                                    \
    (void)lanes_;                                                                                  \
    threadgroup real* shared = shared_;                                                            \
    (void)shared
#define LANES_PARAM , Lanes_ lanes_
#define LANES_ARG , lanes_
#define LANE (lanes_.lane)
#define N_LANES (lanes_.n_lanes)
#define BLOCK (lanes_.block)
#define N_BLOCKS (lanes_.n_blocks)
#define BARRIER() threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
#define SHUFFLE_XOR(x, mask) simd_shuffle_xor(x, ushort(mask))
#define LN(x) precise::log(x)
#define EXP(x) precise::exp(x)
#define SQRT(x) precise::sqrt(x)
#define POW(x, y) precise::pow(x, y)
#define COS(x) precise::cos(x)
#define SIN(x) precise::sin(x)
#define ABS(x) fabs(x)
#define FLOOR(x) floor(x)
#define FMA(a, b, c) fma(a, b, c)
#define COPYSIGN(magnitude, sign) copysign(magnitude, sign)
#define SIGN_BIT(x) signbit(x)
#define IS_FINITE(x) isfinite(x)
#define INF INFINITY
#define R(literal) literal##f

#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)
// ---- CUDA: compile with -DREAL=double or -DREAL=float.
#ifndef REAL
#define REAL double
#endif
typedef REAL real;
typedef unsigned int uint;
#define STRUCT(name) struct name
// A parameter by value that kernels use as a pointer.
template <class T> struct Constants_ {
    T value;
    __device__ __forceinline__ const T* operator->() const { return &value; }
    __device__ __forceinline__ operator const T*() const { return &value; }
};
#define GLOBAL
#define CONSTANT const
#define SHARED
#define PRIVATE
#define FN static __device__ __forceinline__
#define WHERE(condition) if (condition)
#define ROLLED _Pragma("unroll 1")
#define UNROLLED _Pragma("unroll")
#define TABLE(type, name) static __device__ const type name
// 512 lanes share a multiprocessor, so that each has 128 registers: with no such bound ptxas 13 for
// sm_90 stops at 80 and spills.
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(MAX_LANES, MAX_LANES < 512 ? 512 / MAX_LANES : 1) name
#define CONSTANTS(type, name, index) const __grid_constant__ Constants_<type> name
#define IN(type, name, index) const type* __restrict__ name
#define OUT(type, name, index) type* __restrict__ name
#define LANES
extern __shared__ __align__(16) unsigned char shared_bytes_[];
#define ENTER(shared)                                                                              \
    real* shared = reinterpret_cast<real*>(shared_bytes_);                                         \
    (void)shared
#define LANES_PARAM
#define LANES_ARG
#define LANE (threadIdx.x)
#define N_LANES (blockDim.x)
#define BLOCK (blockIdx.x)
#define N_BLOCKS (gridDim.x)
#define BARRIER() __syncthreads()
#define SHUFFLE_XOR(x, mask) __shfl_xor_sync(0xffffffffu, x, mask)
#define LN(x) log(real(x))
#define EXP(x) exp(real(x))
#define SQRT(x) sqrt(real(x))
#define POW(x, y) pow(real(x), real(y))
#define COS(x) cos(real(x))
#define SIN(x) sin(real(x))
#define ABS(x) fabs(real(x))
#define FLOOR(x) floor(real(x))
#define FMA(a, b, c) fma(real(a), real(b), real(c))
#define COPYSIGN(magnitude, sign) copysign(real(magnitude), real(sign))
#define SIGN_BIT(x) (signbit(real(x)) != 0)
#define IS_FINITE(x) (isfinite(real(x)) != 0)
#define INF (real(__longlong_as_double(0x7ff0000000000000LL)))
#define R(literal) (real(literal))

#elif defined(__OPENCL_CPP_VERSION__)
// ---- C++ for OpenCL, never run: clang checks here that no pointer loses its address space.
typedef float real;
#define STRUCT(name) struct name
#define GLOBAL __global
#define CONSTANT const __constant
#define SHARED __local
#define PRIVATE __private
#define FN static inline
#define WHERE(condition) if (condition)
#define ROLLED _Pragma("unroll 1")
#define UNROLLED _Pragma("unroll")
#define TABLE(type, name) __constant const type name
struct Lanes_ {
    uint lane, block, n_lanes, n_blocks;
};
#define KERNEL(name) void name
#define CONSTANTS(type, name, index) const __constant type* name
#define IN(type, name, index) const __global type* name
#define OUT(type, name, index) __global type* name
#define LANES , __local real *shared_, Lanes_ lanes_
#define ENTER(shared)                                                                              \
    __local real* shared = shared_;                                                                \
    (void)shared
#define LANES_PARAM , Lanes_ lanes_
#define LANES_ARG , lanes_
#define LANE (lanes_.lane)
#define N_LANES (lanes_.n_lanes)
#define BLOCK (lanes_.block)
#define N_BLOCKS (lanes_.n_blocks)
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
real shuffle_xor_(real, uint);
uint shuffle_xor_(uint, uint);
#define SHUFFLE_XOR(x, mask) shuffle_xor_(x, mask)
#define LN(x) log(x)
#define EXP(x) exp(x)
#define SQRT(x) sqrt(x)
#define POW(x, y) pow(x, y)
#define COS(x) cos(x)
#define SIN(x) sin(x)
#define ABS(x) fabs(x)
#define FLOOR(x) floor(x)
#define FMA(a, b, c) fma(a, b, c)
#define COPYSIGN(magnitude, sign) copysign(magnitude, sign)
#define SIGN_BIT(x) (signbit(x) != 0)
#define IS_FINITE(x) (isfinite(x) != 0)
#define INF INFINITY
#define R(literal) literal##f

#elif defined(__OPENCL_C_VERSION__)
// ---- OpenCL C 1.2, compiled at run time: with -DNS_DOUBLE in double precision. A cast in functional
// notation is a macro here; the name alone stays the type's. Kernels take two more arguments:
// shared memory, and a number for every lane through which the block shuffles.
#pragma OPENCL FP_CONTRACT OFF
#ifdef NS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
typedef ulong bits_;
#define AS_BITS_(x) as_ulong(x)
#define OF_BITS_(x) as_double(x)
#define R(literal) (literal)
#else
typedef float real;
typedef uint bits_;
#define AS_BITS_(x) as_uint(x)
#define OF_BITS_(x) as_float(x)
#define R(literal) literal##f
#endif
#define real(x) ((real)(x))
#define uint(x) ((uint)(x))
#define STRUCT(name)                                                                               \
    typedef struct name name;                                                                      \
    struct name
#define GLOBAL __global
#define CONSTANT const __constant
#define SHARED __local
#define PRIVATE __private
#define FN static inline __attribute__((overloadable))
#define WHERE(condition) for (bool where_ = (condition); where_; where_ = false)
#define ROLLED _Pragma("unroll 1")
#define UNROLLED _Pragma("unroll")
#define TABLE(type, name) __constant const type name
STRUCT(Lanes_) {
    uint lane, block, n_lanes, n_blocks;
    __local bits_* exchange;
};
#define KERNEL(name) __kernel void name
#define CONSTANTS(type, name, index) const __constant type* name
#define IN(type, name, index) const __global type* restrict name
#define OUT(type, name, index) __global type* restrict name
#define LANES , __local real *shared_, __local bits_ *exchange_
#define ENTER(shared)                                                                              \
    const Lanes_ lanes_ = {(uint)get_local_id(0), (uint)get_group_id(0), (uint)get_local_size(0),  \
                           (uint)get_num_groups(0), exchange_};                                    \
    (void)lanes_;                                                                                  \
    __local real* shared = shared_;                                                                \
    (void)shared
FN bits_ exchange_bits_(const Lanes_ lanes, bits_ x, uint mask) {
    barrier(CLK_LOCAL_MEM_FENCE);
    lanes.exchange[lanes.lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    return lanes.exchange[lanes.lane ^ mask];
}
FN real shuffle_xor_(const Lanes_ lanes, real x, uint mask) { return OF_BITS_(exchange_bits_(lanes, AS_BITS_(x), mask)); }
FN uint shuffle_xor_(const Lanes_ lanes, uint x, uint mask) { return (uint)exchange_bits_(lanes, (bits_)x, mask); }
#define LANES_PARAM , const Lanes_ lanes_
#define LANES_ARG , lanes_
#define LANE (lanes_.lane)
#define N_LANES (lanes_.n_lanes)
#define BLOCK (lanes_.block)
#define N_BLOCKS (lanes_.n_blocks)
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define SHUFFLE_XOR(x, mask) shuffle_xor_(lanes_, x, mask)
#define LN(x) log(real(x))
#define EXP(x) exp(real(x))
#define SQRT(x) sqrt(real(x))
#define POW(x, y) pow(real(x), real(y))
#define COS(x) cos(real(x))
#define SIN(x) sin(real(x))
#define ABS(x) fabs(real(x))
#define FLOOR(x) floor(real(x))
#define FMA(a, b, c) fma(real(a), real(b), real(c))
#define COPYSIGN(magnitude, sign) copysign(real(magnitude), real(sign))
#define SIGN_BIT(x) (signbit(real(x)) != 0)
#define IS_FINITE(x) (isfinite(real(x)) != 0)
#define INF ((real)INFINITY)

#elif defined(NS_EMULATION_H)
// ---- Host C++: emulation/runtime.h runs the lanes. REAL comes from the build.
typedef REAL real;
typedef unsigned int uint;
#define STRUCT(name) struct name
// Constants that kernels use as a pointer.
template <class T> struct Constants_ {
    T value;
    const T* operator->() const { return &value; }
    operator const T*() const { return &value; }
};
#define GLOBAL
#define CONSTANT const
#define SHARED
#define PRIVATE
#define FN static inline
#define WHERE(condition) if (condition)
#define ROLLED
#define UNROLLED
#define TABLE(type, name) static const type name
#define KERNEL(name) static void name
#define CONSTANTS(type, name, index) const Constants_<type>& name
#define IN(type, name, index) const type* name
#define OUT(type, name, index) type* name
#define LANES , emulation::Lane &lane_
#define ENTER(shared)                                                                              \
    real* shared = static_cast<real*>(lane_.shared);                                               \
    (void)shared
#define LANES_PARAM , emulation::Lane &lane_
#define LANES_ARG , lane_
#define LANE (lane_.lane)
#define N_LANES (lane_.n_lanes)
#define BLOCK (lane_.block)
#define N_BLOCKS (lane_.n_blocks)
#define BARRIER() emulation::barrier(lane_, __FILE__, __LINE__)
#define SHUFFLE_XOR(x, mask) emulation::shuffle_xor(lane_, x, mask, __FILE__, __LINE__)
#define LN(x) std::log(real(x))
#define EXP(x) std::exp(real(x))
#define SQRT(x) std::sqrt(real(x))
#define POW(x, y) std::pow(real(x), real(y))
#define COS(x) std::cos(real(x))
#define SIN(x) std::sin(real(x))
#define ABS(x) std::fabs(real(x))
#define FLOOR(x) std::floor(real(x))
#define FMA(a, b, c) std::fma(real(a), real(b), real(c))
#define COPYSIGN(magnitude, sign) std::copysign(real(magnitude), real(sign))
#define SIGN_BIT(x) std::signbit(real(x))
#define IS_FINITE(x) std::isfinite(real(x))
#define INF (std::numeric_limits<real>::infinity())
// sizeof(1f) does not compile, so that R(1) fails here as it does on Metal.
#define R(literal) (static_cast<void>(sizeof(literal##f)), real(literal))

#else
#error "the kernel dialect knows CUDA, Metal, OpenCL C, C++ for OpenCL, and emulation/runtime.h included before it"
#endif

// TINY: the smallest magnitude whose square, and whose reciprocal's square, are still safe.
// EPSILON: the spacing at 1.
#if defined(__METAL_VERSION__) || defined(__OPENCL_CPP_VERSION__) || (defined(__OPENCL_C_VERSION__) && !defined(NS_DOUBLE))
#define TINY R(1e-18)
#define EPSILON R(1.1920929e-7)
#else
#define TINY (sizeof(real) == 8 ? real(1e-150) : real(1e-18f))
#define EPSILON (sizeof(real) == 8 ? real(2.220446049250313e-16) : real(1.1920929e-7f))
#endif

// One meaning of a NaN on every device: MIN and MAX give their first argument when the two don't
// compare.
FN real least_(real a, real b) { return b < a ? b : a; }
FN uint least_(uint a, uint b) { return b < a ? b : a; }
FN int least_(int a, int b) { return b < a ? b : a; }
FN real greatest_(real a, real b) { return a < b ? b : a; }
FN uint greatest_(uint a, uint b) { return a < b ? b : a; }
FN int greatest_(int a, int b) { return a < b ? b : a; }
#define MIN(a, b) least_(a, b)
#define MAX(a, b) greatest_(a, b)

#endif
