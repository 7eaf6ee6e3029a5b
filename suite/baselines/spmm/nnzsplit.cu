//! op spmm
//! format coo
//! let CHUNK 32
//! init zero
//! launch nnzsplit_vec4 grid=(n%4==0)*ceildiv(nnz,CHUNK*32),ceildiv(n,32) block=8,32
//! launch nnzsplit_any grid=(n%4!=0)*ceildiv(nnz,CHUNK*8),ceildiv(n,32) block=32,8

// CHUNK neighbouring entries a team whatever the rows (nonzero splitting of Yang, Buluc and Owens,
// 2018): balanced on any matrix. Rows that lie within a chunk are stored, those that cross its
// borders are added by atomics.

__device__ void axpy(real a, const real& b, real& sum) { sum += a * b; }

__device__ void axpy(real a, const real4& b, real4& sum) {
  sum.x += a * b.x;
  sum.y += a * b.y;
  sum.z += a * b.z;
  sum.w += a * b.w;
}

__device__ void add(real* to, const real& sum) { atomicAdd(to, sum); }

__device__ void add(real4* to, const real4& sum) {
  atomicAdd(&to->x, sum.x);
  atomicAdd(&to->y, sum.y);
  atomicAdd(&to->z, sum.z);
  atomicAdd(&to->w, sum.w);
}

// One Vec of columns of one chunk. Dense rows are n / (columns in a Vec) long.
template <typename Vec>
__device__ void multiply(int nnz, int n, const int* __restrict__ row_idx,
                         const int* __restrict__ col_idx, const real* __restrict__ vals,
                         const Vec* __restrict__ B, Vec* __restrict__ C) {
  const int length = n / (int)(sizeof(Vec) / sizeof(real));
  const int at = blockIdx.y * blockDim.x + threadIdx.x;
  const long long first = ((long long)blockIdx.x * blockDim.y + threadIdx.y) * CHUNK;
  if (first >= nnz || at >= length) return;
  const int count = nnz - first < CHUNK ? (int)(nnz - first) : CHUNK;
  row_idx += first, col_idx += first, vals += first;
  B += at, C += at;

  Vec sum = Vec();
  int row = row_idx[0];
  bool shared = true;  // the chunk's first row may have begun before it
  for (int k = 0; k < count; k += 4) {
    Vec dense[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (k + i < count) dense[i] = B[(size_t)col_idx[k + i] * length];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (k + i >= count) break;
      if (row_idx[k + i] != row) {
        Vec* to = C + (size_t)row * length;
        if (shared) {
          add(to, sum);
        } else {
          *to = sum;
        }
        shared = false;
        sum = Vec();
        row = row_idx[k + i];
      }
      axpy(vals[k + i], dense[i], sum);
    }
  }
  add(C + (size_t)row * length, sum);  // the last row may go on after the chunk
}

extern "C" __global__ void nnzsplit_vec4(int nnz, int n, const int* __restrict__ row_idx,
                                         const int* __restrict__ col_idx,
                                         const real* __restrict__ vals, const real* __restrict__ B,
                                         real* __restrict__ C) {
  multiply(nnz, n, row_idx, col_idx, vals, (const real4*)B, (real4*)C);
}

extern "C" __global__ void nnzsplit_any(int nnz, int n, const int* __restrict__ row_idx,
                                        const int* __restrict__ col_idx,
                                        const real* __restrict__ vals, const real* __restrict__ B,
                                        real* __restrict__ C) {
  multiply(nnz, n, row_idx, col_idx, vals, B, C);
}
