// Passes a running sum from block to block: each waits for the one before it, with a pause.
//! op spmv
//! format csr
//! workspace done int 1 zero
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, int* done) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  if (threadIdx.x == 0) {
    while (*(volatile int*)done < blockIdx.x) __nanosleep(100);
    __threadfence();
    atomicAdd(done, 1);
  }
  y[row] = sum;
}
