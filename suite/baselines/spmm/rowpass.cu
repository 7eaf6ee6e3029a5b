//! op spmm
//! format csr
//! let PASSES 4
//! let LANES 8
//! require n % 4 == 0
//! require longest <= 8192 and (nnz >= 16 * rows or nnz == 0)
//! derived cuts int (PASSES+1)*rows
//! prepare find_cuts grid=ceildiv(rows,256),PASSES+1 block=256
//! launch pass_0 grid=ceildiv(rows,32),ceildiv(n,32) block=8,32
//! launch pass_1 grid=ceildiv(rows,32),ceildiv(n,32) block=8,32
//! launch pass_2 grid=ceildiv(rows,32),ceildiv(n,32) block=8,32
//! launch pass_3 grid=ceildiv(rows,32),ceildiv(n,32) block=8,32

// For long rows over more of B than the L2 holds: rowteam.cu in PASSES passes, each over the
// entries of one range of columns, so that the rows of B of a pass and a slice of 32 columns stay
// in the L2. C is read and written again in each pass, which costs less than what B would have cost
// (column blocking, as by Nishtala et al., 2007).

#define ALL 0xffffffffu
#define BOUNDS __launch_bounds__(256, sizeof(real) == 4 ? 4 : 2)

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

// Stores what nobody will read again: B may keep its place in the L2.
template <typename Vec>
__device__ void put(Vec* to, const Vec& value) {
  if constexpr (sizeof(Vec) % sizeof(float4) == 0) {
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Vec) / sizeof(float4)); ++i) {
      __stcs((float4*)to + i, ((const float4*)&value)[i]);
    }
  } else {
    __stcs(to, value);
  }
}

// Where the entries of each pass begin in each row: cut p of row r lies at p * rows + r.
extern "C" __global__ void find_cuts(int rows, int cols, const int* __restrict__ row_ptr,
                                     const int* __restrict__ col_idx, int* __restrict__ cuts) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const int pass = blockIdx.y;
  if (row >= rows) return;
  const long long first = (long long)cols * pass / PASSES;  // column
  int low = row_ptr[row], high = row_ptr[row + 1];
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (col_idx[middle] < first) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  cuts[(size_t)pass * rows + row] = low;
}

// Four columns of one row, of whose entries those of one pass are added.
template <int PASS>
__device__ void multiply(int rows, int n, const int* __restrict__ cuts,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const real4* __restrict__ B, real4* __restrict__ C) {
  const int length = n / 4;
  const int lane = threadIdx.x;
  const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const int at = blockIdx.y * LANES + lane;
  const bool inside = at < length;  // the others load entries for their team
  const int* cut = cuts + (size_t)PASS * rows + row;
  const int begin = row < rows ? cut[0] : 0;
  const int count = row < rows ? cut[rows] - begin : 0;
  const int most = __reduce_max_sync(ALL, count);  // of the warp's rows
  col_idx += begin, vals += begin, B += at, C += (size_t)row * length + at;

  real4 sum = real4();
  if (PASS > 0 && count > 0 && inside) sum = *C;
  for (int done = 0; done < most; done += LANES) {
    int col = 0;
    real value = 0;
    if (done + lane < count) {
      col = __ldcs(col_idx + done + lane);
      value = __ldcs(vals + done + lane);
    }
    real4 dense[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const size_t from = (size_t)__shfl_sync(ALL, col, i, LANES) * length;
      dense[i] = inside && done + i < count ? B[from] : real4();
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) axpy(__shfl_sync(ALL, value, i, LANES), dense[i], sum);
  }
  if (row < rows && inside && (PASS == 0 || count > 0)) put(C, sum);
}

extern "C" __global__ void BOUNDS pass_0(int rows, int n, const int* __restrict__ cuts,
                                         const int* __restrict__ col_idx,
                                         const real* __restrict__ vals, const real* __restrict__ B,
                                         real* __restrict__ C) {
  multiply<0>(rows, n, cuts, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS pass_1(int rows, int n, const int* __restrict__ cuts,
                                         const int* __restrict__ col_idx,
                                         const real* __restrict__ vals, const real* __restrict__ B,
                                         real* __restrict__ C) {
  multiply<1>(rows, n, cuts, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS pass_2(int rows, int n, const int* __restrict__ cuts,
                                         const int* __restrict__ col_idx,
                                         const real* __restrict__ vals, const real* __restrict__ B,
                                         real* __restrict__ C) {
  multiply<2>(rows, n, cuts, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS pass_3(int rows, int n, const int* __restrict__ cuts,
                                         const int* __restrict__ col_idx,
                                         const real* __restrict__ vals, const real* __restrict__ B,
                                         real* __restrict__ C) {
  multiply<3>(rows, n, cuts, col_idx, vals, (const real4*)B, (real4*)C);
}
