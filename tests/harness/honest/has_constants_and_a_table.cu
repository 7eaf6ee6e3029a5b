// Has constants in a struct, a table in constant memory, and an array of its own in each thread.
//! op spmv
//! format csr
//! launch k grid=ceildiv(rows,64) block=64

struct Tile {
  static constexpr int UNROLL = 4;
};
__constant__ real one[4] = {1, 1, 1, 1};
constexpr int LANES = 2;

extern "C" __global__ void k(int rows, int cols, const int* row_ptr, const int* col_idx,
                             const real* vals, const real* x, real* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  real sums[Tile::UNROLL] = {0, 0, 0, 0};
  for (int p = row_ptr[row]; p < row_ptr[row + 1]; ++p)
    sums[p % Tile::UNROLL] += one[p % (LANES * 2)] * vals[p] * x[col_idx[p]];
  y[row] = sums[0] + sums[1] + sums[2] + sums[3];
}
