//! op spmm
//! format csr
//! let LANES 8
//! let THREADS 1024
//! require longest <= 4096 and rows < 2147480000
//! derived first_row int sms+1
//! prepare find_shares grid=ceildiv(sms+1,128) block=128
//! launch rowmarch_vec4 grid=(n%4==0)*(rows>0)*ceildiv(n,4*LANES)*max(1,min(sms//max(1,ceildiv(n,4*LANES)),ceildiv(rows,128))) block=LANES,THREADS*4//itemsize//LANES
//! launch rowmarch_any grid=(n%4!=0)*(rows>0)*ceildiv(n,LANES)*max(1,min(sms//max(1,ceildiv(n,LANES)),ceildiv(rows,128))) block=LANES,THREADS*4//itemsize//LANES

// A team of LANES threads a row, as rowteam.cu, but one block a multiprocessor that marches through
// a share of the rows: where neighbouring rows have columns in common (meshes, bands, ordered
// graphs), their rows of B stay in its L1 from step to step. Shares have equally much work. Blocks
// with the column slices of one share march side by side and have the matrix in common in the L2.

#define ALL 0xffffffffu
#define BOUNDS __launch_bounds__(THREADS * 4 / sizeof(real), 1)

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

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

// The first row of each share: shares have equally many entries and rows.
extern "C" __global__ void find_shares(int rows, int n, long long nnz, int sms,
                                       const int* __restrict__ row_ptr,
                                       int* __restrict__ first_row) {
  const int width = n % 4 == 0 ? 4 * LANES : LANES;
  const int slices = max(1, (n + width - 1) / width);
  const int shares = max(1, min(sms / slices, (rows - 1) / 128 + 1));  // as launched
  const int share = blockIdx.x * blockDim.x + threadIdx.x;
  if (share > sms) return;
  const double wanted = (double)(nnz + rows) * share / shares;
  int low = 0, high = rows;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if ((double)row_ptr[middle] + middle < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  first_row[share] = share < shares ? low : rows;
}

// The block's share of the rows, a team a row, one Vec of columns a thread. Dense rows are
// n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int n, const int* __restrict__ first_row, const int* __restrict__ row_ptr,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int slices = (length + LANES - 1) / LANES;
  const int share = blockIdx.x / slices;
  const int lane = threadIdx.x;
  const int at = blockIdx.x % slices * LANES + lane;
  const bool inside = at < length;  // the others load entries for their team
  const int last = first_row[share + 1];
  int row = first_row[share] + threadIdx.y;
  B += at, C += at;

  const int steps = __reduce_max_sync(ALL, row < last ? (last - 1 - row) / (int)blockDim.y + 1 : 0);
  int begin = row < last ? row_ptr[row] : 0;
  int end = row < last ? row_ptr[row + 1] : 0;
  for (int step = 0; step < steps; ++step) {
    const int count = end - begin;
    const int from = begin;
    const int next = row + blockDim.y;
    begin = next < last ? row_ptr[next] : 0;  // on its way while this row is summed
    end = next < last ? row_ptr[next + 1] : 0;
    const int most = __reduce_max_sync(ALL, count);  // of the warp's rows
    Vec sum = Vec();
    for (int done = 0; done < most; done += LANES) {
      const bool held = done + lane < count;
      const int col = held ? __ldcs(col_idx + from + done + lane) : 0;
      const real value = held ? __ldcs(vals + from + done + lane) : 0;
      Vec dense[LANES];
#pragma unroll
      for (int i = 0; i < LANES; ++i) {
        const size_t to = (size_t)__shfl_sync(ALL, col, i, LANES) * length;
        dense[i] = inside && done + i < count ? B[to] : Vec();
      }
#pragma unroll
      for (int i = 0; i < LANES; ++i) {
        axpy(__shfl_sync(ALL, value, i, LANES), dense[i], sum);
      }
    }
    if (row < last && inside) put(C + (size_t)row * length, sum);
    row = next;
  }
}

extern "C" __global__ void BOUNDS rowmarch_vec4(int n, const int* __restrict__ first_row,
                                                const int* __restrict__ row_ptr,
                                                const int* __restrict__ col_idx,
                                                const real* __restrict__ vals,
                                                const real* __restrict__ B, real* __restrict__ C) {
  multiply(n, first_row, row_ptr, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void BOUNDS rowmarch_any(int n, const int* __restrict__ first_row,
                                               const int* __restrict__ row_ptr,
                                               const int* __restrict__ col_idx,
                                               const real* __restrict__ vals,
                                               const real* __restrict__ B, real* __restrict__ C) {
  multiply(n, first_row, row_ptr, col_idx, vals, B, C);
}
