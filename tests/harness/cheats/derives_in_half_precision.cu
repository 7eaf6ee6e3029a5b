// tries: derives 16 bits of each value and multiplies by those
// caught by: bound of the error
// status: wrong_result
//! op spmv
//! format csr
//! derived halves ushort nnz
//! prepare ready grid=ceildiv(nnz,256) block=256
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void ready(int nnz, const real* vals, unsigned short* halves) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nnz) halves[i] = __float_as_uint(vals[i]) >> 16;
}

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y,
                             const unsigned short* halves) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p)
    sum += __uint_as_float((unsigned)halves[p] << 16) * x[col_idx[p]];
  y[row] = sum;
}
