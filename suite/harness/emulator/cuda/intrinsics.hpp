// Bits, conversions and integer arithmetic.
#pragma once

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll((unsigned long long)v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }

inline unsigned __brev(unsigned v) {
  v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
  v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
  v = (v >> 4 & 0x0F0F0F0Fu) | (v & 0x0F0F0F0Fu) << 4;
  return __builtin_bswap32(v);
}
inline unsigned long long __brevll(unsigned long long v) {
  return (unsigned long long)__brev((unsigned)v) << 32 | __brev((unsigned)(v >> 32));
}

// Position of the offset-th set bit at or above `base` (below it for a negative offset), or all
// ones.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return mask >> base & 1 ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  for (int at = (int)base, left = offset * step; at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) != 0 && --left == 0) return (unsigned)at;
  return ~0u;
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (unsigned long long)high << 32 | low;
  return (unsigned)(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = (unsigned long long)high << 32 | low;
  return (unsigned)(both >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i);
    unsigned byte = (unsigned)(both >> 8 * (choice & 7)) & 0xFF;
    if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;  // the sign, replicated
    result |= byte << (8 * i);
  }
  return result;
}

namespace emu_core {
template <class To, class From>
inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace emu_core

inline int __float_as_int(float v) { return emu_core::bits<int>(v); }
inline unsigned __float_as_uint(float v) { return emu_core::bits<unsigned>(v); }
inline float __int_as_float(int v) { return emu_core::bits<float>(v); }
inline float __uint_as_float(unsigned v) { return emu_core::bits<float>(v); }
inline long long __double_as_longlong(double v) { return emu_core::bits<long long>(v); }
inline double __longlong_as_double(long long v) { return emu_core::bits<double>(v); }
inline int __double2hiint(double v) { return (int)(__double_as_longlong(v) >> 32); }
inline int __double2loint(double v) { return (int)__double_as_longlong(v); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      (long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

// To an integer, as the GPU does it: out-of-range values become the nearest one, NaN becomes 0.
namespace emu_core {
template <class To>
inline To saturate(double v, To lowest, To highest) {
  if (v != v) return 0;
  if (v <= (double)lowest) return lowest;
  if (v >= (double)highest) return highest;
  return (To)v;
}
inline int to_int(double v) { return saturate<int>(v, -2147483647 - 1, 2147483647); }
inline unsigned to_uint(double v) { return saturate<unsigned>(v, 0u, 4294967295u); }
inline long long to_ll(double v) {
  return saturate<long long>(v, -9223372036854775807LL - 1, 9223372036854775807LL);
}
inline unsigned long long to_ull(double v) {
  return saturate<unsigned long long>(v, 0ULL, 18446744073709551615ULL);
}
}  // namespace emu_core

#define EMU_TO_INTEGER(from, T)                                                                    \
  inline int __##from##2int_rn(T v) { return emu_core::to_int(__builtin_rint(v)); }                \
  inline int __##from##2int_rz(T v) { return emu_core::to_int(__builtin_trunc(v)); }               \
  inline int __##from##2int_rd(T v) { return emu_core::to_int(__builtin_floor(v)); }               \
  inline int __##from##2int_ru(T v) { return emu_core::to_int(__builtin_ceil(v)); }                \
  inline unsigned __##from##2uint_rn(T v) { return emu_core::to_uint(__builtin_rint(v)); }         \
  inline unsigned __##from##2uint_rz(T v) { return emu_core::to_uint(__builtin_trunc(v)); }        \
  inline unsigned __##from##2uint_rd(T v) { return emu_core::to_uint(__builtin_floor(v)); }        \
  inline unsigned __##from##2uint_ru(T v) { return emu_core::to_uint(__builtin_ceil(v)); }         \
  inline long long __##from##2ll_rn(T v) { return emu_core::to_ll(__builtin_rint(v)); }            \
  inline long long __##from##2ll_rz(T v) { return emu_core::to_ll(__builtin_trunc(v)); }           \
  inline unsigned long long __##from##2ull_rn(T v) { return emu_core::to_ull(__builtin_rint(v)); } \
  inline unsigned long long __##from##2ull_rz(T v) { return emu_core::to_ull(__builtin_trunc(v)); }
EMU_TO_INTEGER(float, float)
EMU_TO_INTEGER(double, double)

inline float __int2float_rn(int v) { return (float)v; }
inline float __uint2float_rn(unsigned v) { return (float)v; }
inline float __ll2float_rn(long long v) { return (float)v; }
inline float __ull2float_rn(unsigned long long v) { return (float)v; }
inline double __int2double_rn(int v) { return v; }
inline double __uint2double_rn(unsigned v) { return v; }
inline double __ll2double_rn(long long v) { return (double)v; }
inline double __ull2double_rn(unsigned long long v) { return (double)v; }
inline float __double2float_rn(double v) { return (float)v; }

inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) {
  const int low_a = (int)((unsigned)a << 8) >> 8, low_b = (int)((unsigned)b << 8) >> 8;
  return (int)((unsigned)low_a * (unsigned)low_b);
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFF) * (b & 0xFFFFFF); }
inline unsigned __sad(int a, int b, unsigned c) {
  return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
