// Intrinsics whose results are known. Both arrays: one result a slot, in the order of the tests'
// lists.
extern "C" __global__ void integers(unsigned long long* y, int five) {
  int i = 0;
  unsigned u = 0x12345678u + (five - 5);
  y[i++] = __popc(u);
  y[i++] = __popcll(0xffff0000ffffull);
  y[i++] = __clz(five);
  y[i++] = __clz(five - 5);
  y[i++] = __clzll(five);
  y[i++] = __ffs(five - 1);
  y[i++] = __ffs(five - 5);
  y[i++] = __ffsll(1ll << 40);
  y[i++] = __brev(u);
  y[i++] = __brevll(1ull);
  y[i++] = __funnelshift_l(u, 0xabcdef01u, 8);
  y[i++] = __funnelshift_r(u, 0xabcdef01u, 8);
  y[i++] = __funnelshift_rc(u, 0xabcdef01u, 40);
  y[i++] = __byte_perm(u, 0xabcdef01u, 0x0527);
  y[i++] = __byte_perm(0x80u, 0, 0x0008);
  y[i++] = __umulhi(0x80000000u, 6u);
  y[i++] = (unsigned)__mulhi(-five, 1 << 30);
  y[i++] = __umul64hi(1ull << 63, 6ull);
  y[i++] = (unsigned)__mul24(-five, 3);
  y[i++] = __sad(-2, five, 1u);
  y[i++] = __fns(0xf0u, 0, 2);
  y[i++] = (unsigned)min(five, -7);
  y[i++] = max(-1, 3u);
  y[i++] = min(3ull, (unsigned long long)five);
  y[i++] = __float_as_uint(1.0f);
  y[i++] = (unsigned long long)__double_as_longlong(2.0);
  y[i++] = (unsigned)__float2int_rn(2.5f);
  y[i++] = (unsigned)__float2int_rz(-2.5f);
  y[i++] = (unsigned)__float2int_rd(-2.5f);
  y[i++] = (unsigned)__float2int_ru(2.1f);
  y[i++] = (unsigned)__float2int_rz(1e20f);
  y[i++] = __float2uint_rz(-1.0f);
  y[i++] = (unsigned)__double2int_rn(__int_as_float(0x7fc00000));
  y[i++] = (unsigned)__double2hiint(1.0);
  y[i++] = (unsigned)abs(-five);
  y[i++] = (unsigned)__hadd(five, -8);
}

extern "C" __global__ void reals(double* y, int n) {
  float two = n;
  int i = 0;
  y[i++] = fmaf(two, 3.0f, 1.0f);
  y[i++] = fma(1.0 + 0x1p-52, 1.0 - 0x1p-52, -1.0);
  y[i++] = __fmaf_rn(1.0f + 0x1p-23f, 1.0f - 0x1p-23f, -1.0f);
  y[i++] = __fadd_rn(two, 0.5f) * __fmul_rn(two, two);
  y[i++] = __fdividef(1.0f, two) + __frcp_rn(two);
  y[i++] = fminf(two, __int_as_float(0x7fc00000));
  y[i++] = max(two, 2.5) + fmax(1.0, 0.5);
  y[i++] = sqrtf(16.0f) + sqrt(2.25) + rsqrtf(4.0f);
  y[i++] = fabsf(-two) + fabs(-1.5) + abs(-0.25f);
  y[i++] = floorf(-1.5f) + ceil(1.5) + rintf(2.5f) + trunc(-7.9);
  y[i++] = exp2f(3.0f) + log2(8.0) + powf(two, 3.0f) + pow(two, 2);
  y[i++] = copysignf(3.0f, -1.0f) + fmod(7.0, 4.0) + ldexpf(1.0f, 3);
  y[i++] = isnan(two) + 2 * isinf(1.0f / (two - 2.0f)) + 4 * isfinite(two) + 8 * signbit(-two);
  y[i++] = __saturatef(two) + __saturatef(-two);
  y[i++] = __hiloint2double(0x3ff00000, 0) + __longlong_as_double(0x4000000000000000ll);
  y[i++] = __uint2float_rn(7u) + __int2double_rn(-2) + __double2float_rn(0.5);
  y[i++] = __expf(0.0f) + __cosf(0.0f) + __logf(1.0f);
}
