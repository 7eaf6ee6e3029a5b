//! op spmv
//! format coo
//! init zero
//! launch coo grid=ceildiv(nnz,1024) block=256

// Four entries a thread whatever the rows, and a segmented sum over the warp (Blelloch, Heroux and
// Zagha, 1993; COO of Bell and Garland, 2009): balanced on any matrix, and empty rows cost nothing.
// Rows that cross a lane's or a warp's border are finished by atomics.

// Loads four neighbouring entries of each thread; entries past the end belong to row -1.
__device__ void load_entries(long long first, int nnz, const int* __restrict__ row_idx,
                             const int* __restrict__ col_idx, const real* __restrict__ vals,
                             const real* __restrict__ x, int (&row)[4], real (&product)[4]) {
  if (first + 4 <= nnz) {
    const int4 r = __ldcs((const int4*)(row_idx + first));
    const int4 c = __ldcs((const int4*)(col_idx + first));
    const real4 v = *(const real4*)(vals + first);
    row[0] = r.x, row[1] = r.y, row[2] = r.z, row[3] = r.w;
    product[0] = v.x * x[c.x], product[1] = v.y * x[c.y];
    product[2] = v.z * x[c.z], product[3] = v.w * x[c.w];
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool inside = first + i < nnz;
    row[i] = inside ? row_idx[first + i] : -1;
    product[i] = inside ? vals[first + i] * x[col_idx[first + i]] : 0;
  }
}

// Adds the sums of all runs of equal rows that a warp holds, four neighbouring entries a lane.
__device__ void add_runs(const int (&row)[4], const real (&product)[4], real* __restrict__ y) {
  const unsigned all = 0xffffffffu;
  const int lane = threadIdx.x % 32;
  // The lane's first run may continue the lanes before it, its last run the lanes after it.
  real run = product[0];
  real first_run = 0;
#pragma unroll
  for (int i = 1; i < 4; ++i) {
    if (row[i] == row[i - 1]) {
      run += product[i];
      continue;
    }
    if (row[i - 1] == row[0]) {
      first_run = run;
    } else {
      y[row[i - 1]] = run;  // the whole row lies within this lane: nobody else adds to it
    }
    run = product[i];
  }
  const int first = row[0], last = row[3];
  // Rows ascend, so an equal last row further down means that the lanes between hold nothing else.
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const real sum_below = __shfl_up_sync(all, run, step);
    const int last_below = __shfl_up_sync(all, last, step);
    if (lane >= step && last_below == last) run += sum_below;
  }
  const real carry = __shfl_up_sync(all, run, 1);
  const int carry_row = __shfl_up_sync(all, last, 1);
  const int first_above = __shfl_down_sync(all, first, 1);
  if (first != last && first >= 0) {
    const bool continued = lane > 0 && carry_row == first;
    atomicAdd(&y[first], continued ? first_run + carry : first_run);
  }
  if ((lane == 31 || first_above != last) && last >= 0) atomicAdd(&y[last], run);
}

extern "C" __global__ void coo(int nnz, const int* __restrict__ row_idx,
                               const int* __restrict__ col_idx, const real* __restrict__ vals,
                               const real* __restrict__ x, real* __restrict__ y) {
  const long long first = 4 * ((long long)blockIdx.x * blockDim.x + threadIdx.x);
  int row[4];
  real product[4];
  load_entries(first, nnz, row_idx, col_idx, vals, x, row, product);
  add_runs(row, product, y);
}
