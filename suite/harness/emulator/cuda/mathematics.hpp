// Functions of real numbers. The approximate intrinsics are computed exactly here: a program that
// is only right with less error than the GPU makes is the GPU's to find.
#pragma once

#define EMU_UNARY(name)                                            \
  inline float name##f(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }     \
  inline float name(float x) { return __builtin_##name##f(x); }
#define EMU_BINARY(name)                                                       \
  inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  inline double name(double x, double y) { return __builtin_##name(x, y); }    \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); }

EMU_UNARY(sqrt)
EMU_UNARY(cbrt)
EMU_UNARY(exp)
EMU_UNARY(exp2)
EMU_UNARY(exp10)
EMU_UNARY(expm1)
EMU_UNARY(log)
EMU_UNARY(log2)
EMU_UNARY(log10)
EMU_UNARY(log1p)
EMU_UNARY(sin)
EMU_UNARY(cos)
EMU_UNARY(tan)
EMU_UNARY(asin)
EMU_UNARY(acos)
EMU_UNARY(atan)
EMU_UNARY(sinh)
EMU_UNARY(cosh)
EMU_UNARY(tanh)
EMU_UNARY(erf)
EMU_UNARY(erfc)
EMU_UNARY(floor)
EMU_UNARY(ceil)
EMU_UNARY(trunc)
EMU_UNARY(round)
EMU_UNARY(rint)
EMU_UNARY(nearbyint)
EMU_UNARY(fabs)
EMU_UNARY(logb)
EMU_BINARY(fmod)
EMU_BINARY(remainder)
EMU_BINARY(pow)
EMU_BINARY(atan2)
EMU_BINARY(hypot)
EMU_BINARY(fmin)
EMU_BINARY(fmax)
EMU_BINARY(fdim)
EMU_BINARY(copysign)

inline float pow(float x, int y) { return __builtin_powif(x, y); }
inline double pow(double x, int y) { return __builtin_powi(x, y); }
inline float rsqrtf(float x) { return (float)(1.0 / __builtin_sqrt(x)); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float fdividef(float x, float y) { return x / y; }
inline float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
inline double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
inline float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
inline float scalbnf(float x, int e) { return __builtin_ldexpf(x, e); }
inline double scalbn(double x, int e) { return __builtin_ldexp(x, e); }
inline long lrintf(float x) { return __builtin_lrintf(x); }
inline long lrint(double x) { return __builtin_lrint(x); }
inline long lroundf(float x) { return __builtin_lroundf(x); }
inline long lround(double x) { return __builtin_lround(x); }
inline long long llrintf(float x) { return __builtin_llrintf(x); }
inline long long llrint(double x) { return __builtin_llrint(x); }

#define EMU_CLASSIFY(f)                                    \
  inline bool f(float x) { return __builtin_##f(x) != 0; } \
  inline bool f(double x) { return __builtin_##f(x) != 0; }
EMU_CLASSIFY(isnan)
EMU_CLASSIFY(isinf)
EMU_CLASSIFY(isfinite)
EMU_CLASSIFY(signbit)

inline int abs(int x) { return x < 0 ? (int)-(unsigned)x : x; }
inline long abs(long x) { return x < 0 ? (long)-(unsigned long)x : x; }
inline long long abs(long long x) { return x < 0 ? (long long)-(unsigned long long)x : x; }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }
inline long labs(long x) { return abs(x); }
inline long long llabs(long long x) { return abs(x); }

#define EMU_EXTREMA(R, A, B)                                   \
  inline R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
  inline R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
EMU_EXTREMA(int, int, int)
EMU_EXTREMA(unsigned, unsigned, unsigned)
EMU_EXTREMA(unsigned, int, unsigned)
EMU_EXTREMA(unsigned, unsigned, int)
EMU_EXTREMA(long, long, long)
EMU_EXTREMA(unsigned long, unsigned long, unsigned long)
EMU_EXTREMA(unsigned long, long, unsigned long)
EMU_EXTREMA(unsigned long, unsigned long, long)
EMU_EXTREMA(long long, long long, long long)
EMU_EXTREMA(unsigned long long, unsigned long long, unsigned long long)
EMU_EXTREMA(unsigned long long, long long, unsigned long long)
EMU_EXTREMA(unsigned long long, unsigned long long, long long)

// A NaN loses against a number.
#define EMU_REAL_EXTREMA(R, A, B, f)                         \
  inline R min(A a, B b) { return __builtin_fmin##f(a, b); } \
  inline R max(A a, B b) { return __builtin_fmax##f(a, b); }
EMU_REAL_EXTREMA(float, float, float, f)
EMU_REAL_EXTREMA(double, double, double, )
EMU_REAL_EXTREMA(double, float, double, )
EMU_REAL_EXTREMA(double, double, float, )

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline float __frsqrt_rn(float a) { return rsqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }

inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float a) { return __builtin_fminf(__builtin_fmaxf(a, 0.0f), 1.0f); }
inline float __expf(float x) { return __builtin_expf(x); }
inline float __exp10f(float x) { return __builtin_exp10f(x); }
inline float __logf(float x) { return __builtin_logf(x); }
inline float __log2f(float x) { return __builtin_log2f(x); }
inline float __log10f(float x) { return __builtin_log10f(x); }
inline float __sinf(float x) { return __builtin_sinf(x); }
inline float __cosf(float x) { return __builtin_cosf(x); }
inline float __tanf(float x) { return __builtin_tanf(x); }
inline float __powf(float x, float y) { return __builtin_powf(x, y); }
