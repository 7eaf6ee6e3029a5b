// Counts blocks with an atomic; whichever comes last adds the parts up, after a fence.
//! op spmv
//! format csr
//! workspace parts real 8*rows
//! workspace count unsigned 1 zero
//! launch k grid=8 block=128

extern "C" __global__ void k(int rows, const int* row_ptr, const int* col_idx, const real* vals,
                             const real* x, real* y, real* parts, unsigned* count) {
  __shared__ bool last;
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    real sum = 0;
    for (int p = row_ptr[row] + blockIdx.x; p < row_ptr[row + 1]; p += gridDim.x)
      sum += vals[p] * x[col_idx[p]];
    parts[blockIdx.x * rows + row] = sum;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    real sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += ((volatile real*)parts)[b * rows + row];
    y[row] = sum;
  }
}
