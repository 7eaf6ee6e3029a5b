// The environment that CUDA gives a program, for a C++ compiler. Included before the program, which
// sees no other header and none of the host compiler's predefined macros, as under NVRTC.
//
// Not emulated, hence an error that says so: inline PTX, device-side malloc, half precision, SIMD
// video instructions, directed rounding, clusters, asynchronous copies, textures.
#pragma once

#include "../native/runtime.hpp"
#include "intrinsics.hpp"
#include "mathematics.hpp"
#include "memory.hpp"
#include "vectors.hpp"
#include "warp.hpp"

typedef decltype(sizeof 0) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
typedef long clock_t;

extern "C" {
void* memcpy(void*, const void*, size_t) noexcept;
void* memset(void*, int, size_t) noexcept;
void* memmove(void*, const void*, size_t) noexcept;
}

namespace emu_core {
template <size_t bytes>
constexpr size_t alignment() {
  return bytes;
}
template <class T>
constexpr size_t alignment() {
  return alignof(T);
}
}  // namespace emu_core

#define __CUDACC_RTC__ 1
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0

#define __device__
#define __host__
#define __global__
#define __constant__
#define __managed__
#define __shared__ thread_local
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define alignas(what) \
  __attribute__((aligned(emu_core::alignment<what>())))  // also after __shared__
#define __launch_bounds__(...)
#define __maxnreg__(count)
#define __builtin_assume(condition) ((void)0)
#define __assume(condition) ((void)0)
#define assert(condition) ((condition) ? (void)0 : emu_trap("assertion failed: " #condition))

#define warpSize 32

inline void __trap() { emu_trap("trap"); }
inline void __brkpt() {}
inline void __nanosleep(unsigned) { emu_yield(); }
inline long long clock64() { return (long long)emu_clock(); }
inline clock_t clock() { return (clock_t)clock64(); }
inline unsigned long long __globaltimer() { return (unsigned long long)clock64(); }

// What a program prints is discarded.
template <class... Arguments>
inline int printf(const char*, Arguments...) {
  return 0;
}

namespace emu_core {

template <int... I>
struct Positions {};
template <int N, int... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <int... I>
struct Count<0, I...> {
  typedef Positions<I...> type;
};

template <class T>
inline T argument(const word* from) {
  static_assert(sizeof(T) <= sizeof(word), "a kernel parameter is a pointer or a number");
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class... A, int... I>
inline void call(void (*kernel)(A...), const word* arguments, Positions<I...>) {
  kernel(argument<A>(arguments + I)...);
}

template <class... A>
constexpr int arity(void (*)(A...)) {
  return sizeof...(A);
}

template <class... A>
inline void call(void (*kernel)(A...), const word* arguments) {
  call(kernel, arguments, typename Count<sizeof...(A)>::type());
}

}  // namespace emu_core

// The entry through which the scheduler runs one thread of a kernel.
#define EMU_ENTRY(kernel, count)                                                          \
  static_assert(emu_core::arity(&kernel) == count, "launched with " #count " arguments"); \
  extern "C" __attribute__((visibility("default"))) void emu_entry_##kernel(              \
      const emu_core::word* arguments) {                                                  \
    emu_core::call(&kernel, arguments);                                                   \
  }

#define asm inline_PTX_is_not_emulated
#define __asm__ inline_PTX_is_not_emulated
#define __asm inline_PTX_is_not_emulated
