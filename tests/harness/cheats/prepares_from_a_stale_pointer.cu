// tries: leaves the address of x in scratch memory, so that the next prepare kernel can read x
// caught by: guard
// status: memory_fault
//! op spmv
//! format csr
//! workspace place int 2
//! derived copy real nnz
//! prepare ready grid=ceildiv(nnz,256) block=256
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void ready(int nnz, const int* place, real* copy) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nnz) copy[i] = **(const real* const*)place;
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y, const real* copy,
                             int* place) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p) sum += vals[p] * x[col_idx[p]];
  y[row] = sum;
  if (row == 0) *(const real**)place = x + (copy[0] == 12345);
}
