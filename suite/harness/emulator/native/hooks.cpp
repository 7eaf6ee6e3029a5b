// What the compiler calls around a program's memory accesses: its interface for a race detector,
// put to another use here. Linked into every program.
//
// In a launch that looks for races, the other threads of the block go first before a plain store: a
// sum without an atomic loses updates, as it does on a GPU, where lanes go in step. By an atomic
// operation or a volatile load, a thread may poll for what another one does.
#include <stddef.h>

#include "runtime.hpp"

#define EMU_HOOK extern "C" __attribute__((visibility("hidden")))

constexpr size_t OWN = 16 << 10;  // of a stack, which is larger

static inline void polled() {
  if (__builtin_expect((++emu_polls & 1023) == 0, 0)) emu_yield();
}
// What lies just above this frame is the thread's own, and nobody else's business.
static inline void storing(const void* at) {
  const auto above = (size_t)at - (size_t)__builtin_frame_address(0);
  if (__builtin_expect(emu_racing != 0 && above >= OWN, 0)) emu_race(at);
}

#define EMU_ACCESS(size)                          \
  EMU_HOOK void __tsan_read##size(const void*) {} \
  EMU_HOOK void __tsan_write##size(const void* at) { storing(at); }
#define EMU_VOLATILE(size)                                            \
  EMU_HOOK void __tsan_volatile_read##size(const void*) { polled(); } \
  EMU_HOOK void __tsan_volatile_write##size(const void* at) { storing(at); }
#define EMU_UNALIGNED(size)                                 \
  EMU_HOOK void __tsan_unaligned_read##size(const void*) {} \
  EMU_HOOK void __tsan_unaligned_write##size(const void* at) { storing(at); }

EMU_ACCESS(1)
EMU_ACCESS(2)
EMU_ACCESS(4)
EMU_ACCESS(8)
EMU_ACCESS(16)
EMU_VOLATILE(1)
EMU_VOLATILE(2)
EMU_VOLATILE(4)
EMU_VOLATILE(8)
EMU_VOLATILE(16)
EMU_UNALIGNED(2)
EMU_UNALIGNED(4)
EMU_UNALIGNED(8)
EMU_UNALIGNED(16)
EMU_HOOK void __tsan_read_range(const void*, size_t) {}
EMU_HOOK void __tsan_write_range(const void* at, size_t) { storing(at); }
EMU_HOOK void __tsan_vptr_update(void*, void*) {}
EMU_HOOK void __tsan_init() {}

// Every atomic operation is as strong as can be, whatever order it asks for.
#define EMU_ORDER __ATOMIC_SEQ_CST
#define EMU_FETCH(bits, T, how)                                   \
  EMU_HOOK T __tsan_atomic##bits##_fetch_##how(T* at, T v, int) { \
    polled();                                                     \
    return __atomic_fetch_##how(at, v, EMU_ORDER);                \
  }
#define EMU_COMPARE(bits, T, strength)                                                            \
  EMU_HOOK bool __tsan_atomic##bits##_compare_exchange_##strength(T* at, T* old, T v, int, int) { \
    polled();                                                                                     \
    return __atomic_compare_exchange_n(at, old, v, false, EMU_ORDER, EMU_ORDER);                  \
  }
#define EMU_ATOMICS(bits, T)                                   \
  EMU_FETCH(bits, T, add)                                      \
  EMU_FETCH(bits, T, sub)                                      \
  EMU_FETCH(bits, T, and)                                      \
  EMU_FETCH(bits, T, or)                                       \
  EMU_FETCH(bits, T, xor)                                      \
  EMU_FETCH(bits, T, nand)                                     \
  EMU_COMPARE(bits, T, strong)                                 \
  EMU_COMPARE(bits, T, weak)                                   \
  EMU_HOOK T __tsan_atomic##bits##_exchange(T* at, T v, int) { \
    polled();                                                  \
    return __atomic_exchange_n(at, v, EMU_ORDER);              \
  }                                                            \
  EMU_HOOK T __tsan_atomic##bits##_load(const T* at, int) {    \
    polled();                                                  \
    return __atomic_load_n(at, EMU_ORDER);                     \
  }                                                            \
  EMU_HOOK void __tsan_atomic##bits##_store(T* at, T v, int) { __atomic_store_n(at, v, EMU_ORDER); }

EMU_ATOMICS(8, unsigned char)
EMU_ATOMICS(16, unsigned short)
EMU_ATOMICS(32, unsigned)
EMU_ATOMICS(64, unsigned long long)
EMU_HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(EMU_ORDER); }
EMU_HOOK void __tsan_atomic_signal_fence(int) {}
