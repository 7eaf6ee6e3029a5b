// Loads and stores with cache hints, fences and atomic operations.
#pragma once

#include "../native/runtime.hpp"
#include "vectors.hpp"

namespace emu_core {

template <class T>
struct Same {
  typedef T type;
};

constexpr int SEQUENTIAL = 5;  // the compiler's name for it is a predefined macro, hence absent

template <class T, class Next>
inline T update(T* at, Next next) {
  T old = *(volatile T*)at;
  for (;;) {
    T replacement = next(old);
    if (__atomic_compare_exchange(at, &old, &replacement, false, SEQUENTIAL, SEQUENTIAL))
      return old;
  }
}

}  // namespace emu_core

#define EMU_LOAD(name)           \
  template <class T>             \
  inline T name(const T* from) { \
    return *from;                \
  }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
template <class T>
inline T __ldcv(const T* from) {
  __atomic_thread_fence(emu_core::SEQUENTIAL);  // fetched anew: not moved out of a loop
  return *from;
}

#define EMU_STORE(name)                                             \
  template <class T>                                                \
  inline void name(T* to, typename emu_core::Same<T>::type value) { \
    *to = value;                                                    \
  }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)

inline void __threadfence() { __atomic_thread_fence(emu_core::SEQUENTIAL); }
inline void __threadfence_block() { __atomic_thread_fence(emu_core::SEQUENTIAL); }
inline void __threadfence_system() { __atomic_thread_fence(emu_core::SEQUENTIAL); }

// In the scopes block, device and system, which are one here.
#define EMU_ATOMIC(name, T, body)                           \
  inline T name(T* at, T v) { body }                        \
  inline T name##_block(T* at, T v) { return name(at, v); } \
  inline T name##_system(T* at, T v) { return name(at, v); }

#define EMU_ATOMIC_INTEGER(T)                                                             \
  EMU_ATOMIC(atomicAdd, T, return __atomic_fetch_add(at, v, emu_core::SEQUENTIAL);)       \
  EMU_ATOMIC(atomicExch, T, return __atomic_exchange_n(at, v, emu_core::SEQUENTIAL);)     \
  inline T atomicCAS(T* at, T expected, T v) {                                            \
    __atomic_compare_exchange_n(at, &expected, v, false, emu_core::SEQUENTIAL,            \
                                emu_core::SEQUENTIAL);                                    \
    return expected;                                                                      \
  }                                                                                       \
  inline T atomicCAS_block(T* at, T expected, T v) { return atomicCAS(at, expected, v); } \
  inline T atomicCAS_system(T* at, T expected, T v) { return atomicCAS(at, expected, v); }
EMU_ATOMIC_INTEGER(int)
EMU_ATOMIC_INTEGER(unsigned)
EMU_ATOMIC_INTEGER(unsigned long long)

#define EMU_ATOMIC_EXTREMA_BITS(T)                                                                 \
  EMU_ATOMIC(atomicMin, T, return emu_core::update(at, [v](T old) { return v < old ? v : old; });) \
  EMU_ATOMIC(atomicMax, T, return emu_core::update(at, [v](T old) { return v > old ? v : old; });)
EMU_ATOMIC_EXTREMA_BITS(int)
EMU_ATOMIC_EXTREMA_BITS(unsigned)
EMU_ATOMIC_EXTREMA_BITS(long long)
EMU_ATOMIC_EXTREMA_BITS(unsigned long long)

#define EMU_ATOMIC_BITS(T)                                                          \
  EMU_ATOMIC(atomicAnd, T, return __atomic_fetch_and(at, v, emu_core::SEQUENTIAL);) \
  EMU_ATOMIC(atomicOr, T, return __atomic_fetch_or(at, v, emu_core::SEQUENTIAL);)   \
  EMU_ATOMIC(atomicXor, T, return __atomic_fetch_xor(at, v, emu_core::SEQUENTIAL);)
EMU_ATOMIC_BITS(int)
EMU_ATOMIC_BITS(unsigned)
EMU_ATOMIC_BITS(unsigned long long)

EMU_ATOMIC(atomicSub, int, return __atomic_fetch_sub(at, v, emu_core::SEQUENTIAL);)
EMU_ATOMIC(atomicSub, unsigned, return __atomic_fetch_sub(at, v, emu_core::SEQUENTIAL);)
EMU_ATOMIC(atomicInc, unsigned,
           return emu_core::update(at, [v](unsigned old) { return old >= v ? 0u : old + 1; });)
EMU_ATOMIC(atomicDec, unsigned, return emu_core::update(at, [v](unsigned old) {
             return old == 0 || old > v ? v : old - 1;
           });)
EMU_ATOMIC(atomicAdd, float, return emu_core::update(at, [v](float old) { return old + v; });)
EMU_ATOMIC(atomicAdd, double, return emu_core::update(at, [v](double old) { return old + v; });)
EMU_ATOMIC(atomicExch, float, return emu_core::update(at, [v](float) { return v; });)

// Each component is atomic, the whole is not; so on the GPU.
inline float2 atomicAdd(float2* at, float2 v) {
  return {atomicAdd(&at->x, v.x), atomicAdd(&at->y, v.y)};
}
inline float4 atomicAdd(float4* at, float4 v) {
  return {atomicAdd(&at->x, v.x), atomicAdd(&at->y, v.y), atomicAdd(&at->z, v.z),
          atomicAdd(&at->w, v.w)};
}
