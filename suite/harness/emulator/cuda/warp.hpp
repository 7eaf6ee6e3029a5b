// Barriers and what the lanes of a warp tell each other.
#pragma once

#include "../native/runtime.hpp"

inline void __syncthreads() { emu_barrier(0); }
inline int __syncthreads_count(int predicate) { return (int)(unsigned)emu_barrier(predicate != 0); }
inline int __syncthreads_or(int predicate) { return (unsigned)emu_barrier(predicate != 0) != 0; }
inline int __syncthreads_and(int predicate) {
  const emu_core::word counts = emu_barrier(predicate != 0);
  return (unsigned)counts == (unsigned)(counts >> 32);
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  emu_collective(emu_core::SYNCWARP, mask, 0, 0);
}
inline unsigned __activemask() __attribute__((always_inline));  // each call a place of its own
inline unsigned __activemask() { return emu_activemask(); }

namespace emu_core {

template <class T>
inline word to_word(T value) {
  static_assert(sizeof(T) <= sizeof(word), "a shuffle moves up to 8 bytes");
  word w = 0;
  __builtin_memcpy(&w, &value, sizeof value);
  return w;
}

template <class T>
inline T from_word(word w) {
  T value;
  __builtin_memcpy(&value, &w, sizeof value);
  return value;
}

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source) {
  return from_word<T>(emu_collective(SHUFFLE, mask, to_word(value), source));
}

inline unsigned lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
}

inline unsigned vote(unsigned mask, bool predicate, unsigned& voters) {
  const word votes = emu_collective(VOTE, mask, predicate, 0);
  voters = (unsigned)(votes >> 32);
  return (unsigned)votes;
}

}  // namespace emu_core

// Lanes form segments of `width`; a source outside the own segment means the lane itself, except
// that
// __shfl_xor_sync may reach into earlier segments.
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned inside = (unsigned)width - 1;
  return emu_core::shuffle(mask, value, (emu_core::lane() & ~inside) | ((unsigned)source & inside));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = emu_core::lane(), first = lane & ~((unsigned)width - 1);
  return emu_core::shuffle(mask, value, lane >= first + delta ? lane - delta : lane);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = emu_core::lane(), last = lane | ((unsigned)width - 1);
  return emu_core::shuffle(mask, value, lane + delta <= last ? lane + delta : lane);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const unsigned lane = emu_core::lane(), last = lane | ((unsigned)width - 1);
  const unsigned source = lane ^ (unsigned)with;
  return emu_core::shuffle(mask, value, source <= last ? source : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned voters;
  return emu_core::vote(mask, predicate != 0, voters);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  unsigned voters;
  const unsigned ayes = emu_core::vote(mask, predicate != 0, voters);
  return ayes == voters;
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value) {
  return (unsigned)emu_collective(emu_core::MATCH_ANY, mask, emu_core::to_word(value), 0);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all) {
  const auto same =
      (unsigned)emu_collective(emu_core::MATCH_ALL, mask, emu_core::to_word(value), 0);
  *all = same != 0;
  return same;
}

#define EMU_REDUCE(name, T, reduction)                                                      \
  inline T name(unsigned mask, T value) {                                                   \
    return (T)emu_collective(emu_core::REDUCE, mask, (unsigned)value, emu_core::reduction); \
  }
EMU_REDUCE(__reduce_add_sync, int, ADD)
EMU_REDUCE(__reduce_add_sync, unsigned, ADD)
EMU_REDUCE(__reduce_min_sync, int, MIN_SIGNED)
EMU_REDUCE(__reduce_min_sync, unsigned, MIN_UNSIGNED)
EMU_REDUCE(__reduce_max_sync, int, MAX_SIGNED)
EMU_REDUCE(__reduce_max_sync, unsigned, MAX_UNSIGNED)
EMU_REDUCE(__reduce_and_sync, unsigned, AND)
EMU_REDUCE(__reduce_or_sync, unsigned, OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, XOR)
