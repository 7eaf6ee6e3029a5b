//! op spmv
//! format csr
//! require cols*itemsize<=212992
//! derived narrow_cols ushort nnz
//! prepare narrow grid=ceildiv(nnz,256) block=256
//! launch xshared grid=min(sms*(1+(cols*itemsize<=98304)),rows) block=1024 shared=cols*itemsize+16

// For matrices of few columns: all of x lies in shared memory, where scattered gathers cost next to
// nothing, and columns take 16 bits, so that an entry is 6 bytes. Each block takes an equal share
// of the rows, a warp a row as in csr_vector; row pointers are fetched a row ahead.

extern "C" __global__ void narrow(int nnz, const int* __restrict__ col_idx,
                                  unsigned short* __restrict__ narrow_cols) {
  const long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (k < nnz) narrow_cols[k] = (unsigned short)col_idx[k];
}

extern "C" __global__ void __launch_bounds__(1024, 2)
    xshared(int rows, int cols, const int* __restrict__ row_ptr,
            const unsigned short* __restrict__ narrow_cols, const real* __restrict__ vals,
            const real* __restrict__ x, real* __restrict__ y) {
  extern __shared__ uint4 memory[];
  const real* shared_x = (const real*)memory;
  const int vectors = (int)(((long long)cols * sizeof(real) + 15) / 16);
  const int lane = threadIdx.x % 32, warps = 1024 / 32;
  const long long end = (long long)rows * (blockIdx.x + 1) / gridDim.x;
  long long row = (long long)rows * blockIdx.x / gridDim.x + threadIdx.x / 32;
  int from = 0, to = 0;
  if (row < end) from = row_ptr[row], to = row_ptr[row + 1];
#pragma unroll 4
  for (int i = threadIdx.x; i < vectors; i += 1024) memory[i] = ((const uint4*)x)[i];
  __syncthreads();
  for (; row < end; row += warps) {
    int next_from = 0, next_to = 0;
    if (row + warps < end) next_from = row_ptr[row + warps], next_to = row_ptr[row + warps + 1];
    real sum = 0;
#pragma unroll 4
    for (int k = from + lane; k < to; k += 32) {
      sum += __ldcs(vals + k) * shared_x[__ldcs(narrow_cols + k)];
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (lane == 0) y[row] = sum;
    from = next_from, to = next_to;
  }
}
