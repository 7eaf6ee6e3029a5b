// Vector types with CUDA's alignments, and make_NAME for each.
#pragma once

#include "../native/runtime.hpp"

#define EMU_VECTORS(T, name, align1, align2, align4)                 \
  struct __attribute__((aligned(align1))) name##1 { T x; };          \
  struct __attribute__((aligned(align2))) name##2 { T x, y; };       \
  struct name##3 { T x, y, z; };                                     \
  struct __attribute__((aligned(align4))) name##4 { T x, y, z, w; }; \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  EMU_MAKERS(T, name)

#define EMU_MAKERS(T, name)                                  \
  inline name##1 make_##name##1(T x) { return {x}; }         \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

EMU_VECTORS(signed char, char, 1, 2, 4)
EMU_VECTORS(unsigned char, uchar, 1, 2, 4)
EMU_VECTORS(short, short, 2, 4, 8)
EMU_VECTORS(unsigned short, ushort, 2, 4, 8)
EMU_VECTORS(int, int, 4, 8, 16)
EMU_VECTORS(long, long, 8, 16, 16)
EMU_VECTORS(unsigned long, ulong, 8, 16, 16)
EMU_VECTORS(long long, longlong, 8, 16, 16)
EMU_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
EMU_VECTORS(float, float, 4, 8, 16)
EMU_VECTORS(double, double, 8, 16, 16)

// uint3 is the type of threadIdx and so on, hence of the runtime.
struct uint1 {
  unsigned x;
};
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
};
EMU_MAKERS(unsigned, uint)
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

#define EMU_WIDE(T, name, bytes)                \
  struct __attribute__((aligned(bytes))) name { \
    T x, y, z, w;                               \
  };                                            \
  inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }

EMU_WIDE(double, double4_16a, 16)
EMU_WIDE(double, double4_32a, 32)
EMU_WIDE(long long, longlong4_16a, 16)
EMU_WIDE(long long, longlong4_32a, 32)
EMU_WIDE(unsigned long long, ulonglong4_16a, 16)
EMU_WIDE(unsigned long long, ulonglong4_32a, 32)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
