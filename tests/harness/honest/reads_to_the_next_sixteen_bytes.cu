// Loads four values at a time, past the end of the array where that is allowed, and casts its
//   pointers.
//! op spmv
//! format csr
//! require itemsize == 4
//! launch k grid=ceildiv(rows,64) block=64

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sum = 0;
  int begin = row_ptr[row], end = row_ptr[row + 1];
  for (int p = begin / 4 * 4; p < end; p += 4) {
    real4 v = *(const real4*)(vals + p);
    int4 c = *(const int4*)(col_idx + p);
    if (p >= begin) sum += v.x * x[c.x];
    if (p + 1 >= begin && p + 1 < end) sum += v.y * x[c.y];
    if (p + 2 >= begin && p + 2 < end) sum += v.z * x[c.z];
    if (p + 3 >= begin && p + 3 < end) sum += v.w * x[c.w];
  }
  y[row] = sum;
}
