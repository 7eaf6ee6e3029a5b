// Parts of the language that are not plain C++: qualifiers, shared memory, globals, templates,
// lambdas.
__constant__ int weights[4] = {1, 10, 100, 1000};
__device__ int visits = 5;

template <int N>
__device__ __forceinline__ int times(int v) {
  return N * v;
}

template <class T, int N>
__device__ T block_sum(T v) {
  __shared__ T part[N];
  part[threadIdx.x] = v;
  __syncthreads();
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  return part[0];
}

__device__ __noinline__ static int apart(int v) { return v - 1; }

struct __align__(8) Pair {
  int first, second;
  __device__ Pair operator+(const Pair& other) const {
    return {first + other.first, second + other.second};
  }
};

extern "C" __global__ void __launch_bounds__(64, 2)
    language(int* __restrict__ y, const int* __restrict__ x, long long scale, unsigned count) {
  auto twice = [=](int v) { return 2 * v; };
  int i = blockIdx.x * 64 + threadIdx.x;
  int sum = block_sum<int, 64>(x[i]);
  float fsum = block_sum<float, 64>(0.5f * x[i]);
  Pair p = Pair{sum, (int)fsum} + Pair{1, 1};
  if (threadIdx.x == 0) {
    y[blockIdx.x * 4 + 0] = p.first;
    y[blockIdx.x * 4 + 1] = p.second + weights[2];
    y[blockIdx.x * 4 + 2] = times<3>(twice(apart((int)scale))) + (int)count;
    y[blockIdx.x * 4 + 3] = warpSize + __CUDA_ARCH__;
    atomicAdd(&visits, 1);
  }
}

extern "C" __global__ void visited(int* y, const int* x) { y[0] = visits + x[0]; }

// Two arrays in the block's dynamic shared memory, as two names for its start.
extern "C" __global__ void dynamic(int* y, int n) {
  extern __shared__ __align__(16) unsigned char bytes[];
  int* first = (int*)bytes;
  float* second = (float*)(first + n);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    first[i] = i;
    second[i] = 0.5f * i;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[blockIdx.x * n + i] = first[n - 1 - i] + (int)(2 * second[i]);
}

extern "C" __global__ void other_name(int* y) {
  extern __shared__ int words[];
  __shared__ int here;
  if (threadIdx.x == 0) here = 7;
  words[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = words[threadIdx.x ^ 1] + here;
}
