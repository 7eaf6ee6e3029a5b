// Sizes and alignments of vector types, and vector loads and stores with cache hints.
#define SIZES(T)      \
  y[i++] = sizeof(T); \
  y[i++] = alignof(T);

extern "C" __global__ void sizes(int* y) {
  int i = 0;
  SIZES(char4)
  SIZES(uchar2) SIZES(short2) SIZES(ushort4) SIZES(int2) SIZES(int3) SIZES(int4) SIZES(uint4)
      SIZES(float2) SIZES(float3) SIZES(float4) SIZES(double2) SIZES(double4_16a) SIZES(double4_32a)
          SIZES(longlong2) SIZES(ulonglong2) SIZES(real4)
}

extern "C" __global__ void moves(float* y, const float* __restrict__ x, const int* idx) {
  int i = threadIdx.x;
  float4 v = __ldg(reinterpret_cast<const float4*>(x) + i);
  int2 p = __ldcs((const int2*)idx + i);
  float2 w = make_float2(v.x + v.y, v.z + v.w);
  float4 r = make_float4(w.x, w.y, (float)p.x, __ldcg(idx + 2 * i + 1));
  r.z += __ldca(x) + __ldlu(x) + __ldcv(x);
  __stcs((float4*)y + i, r);
  __syncwarp();
  __stcg(y + 4 * i, r.x + 1);
  __stwt(y + 4 * i + 1, r.y + 1);
}
