//! op spmv
//! format csr
//! let WORDS 4
//! require longest<=15
//! derived lengths unsigned 4*WORDS*ceildiv(rows,32*WORDS)
//! derived starts int WORDS*ceildiv(rows,32*WORDS)
//! prepare pack grid=ceildiv(rows,32*WORDS) block=32*WORDS
//! launch csr_packed grid=ceildiv(rows,256*WORDS) block=256

// For short and empty rows the row pointers are a good part of what a kernel reads. Here 32 rows
// have one start, and their lengths stand in bit planes, one word a bit: 2 to 5 bits a row instead
// of 32, and bit counts instead of a scan find each row's entries. A thread takes WORDS rows, 32
// apart, at once, so that their loads overlap and y is written side by side.

// Word w of plane b has bit b of the lengths of rows 32 w to 32 w + 31.
extern "C" __global__ void pack(int rows, const int* __restrict__ row_ptr,
                                unsigned* __restrict__ lengths, int* __restrict__ starts) {
  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const size_t words = (size_t)gridDim.x * WORDS, word = row / 32;
  const int length = row < rows ? row_ptr[row + 1] - row_ptr[row] : 0;
#pragma unroll
  for (int bit = 0; bit < 4; ++bit) {
    const unsigned plane = __ballot_sync(0xffffffffu, length >> bit & 1);
    if (threadIdx.x % 32 == 0) lengths[bit * words + word] = plane;
  }
  if (threadIdx.x % 32 == 0) starts[word] = row_ptr[min(row, (long long)rows)];
}

extern "C" __global__ void csr_packed(int rows, int longest, const unsigned* __restrict__ lengths,
                                      const int* __restrict__ starts,
                                      const int* __restrict__ col_idx,
                                      const real* __restrict__ vals, const real* __restrict__ x,
                                      real* __restrict__ y) {
  const long long first = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32 * (32 * WORDS);
  const int lane = threadIdx.x % 32;
  if (first >= rows) return;
  const size_t words = (size_t)((rows - 1) / (32 * WORDS) + 1) * WORDS, word = first / 32;
  const unsigned below = (1u << lane) - 1;
  int length[WORDS], at[WORDS];
  real sum[WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; i += 4) {
    const int4 start = __ldcs((const int4*)(starts + word + i));
    at[i] = start.x, at[i + 1] = start.y, at[i + 2] = start.z, at[i + 3] = start.w;
  }
#pragma unroll
  for (int i = 0; i < WORDS; ++i) length[i] = 0, sum[i] = 0;
  for (int bit = 0; longest >> bit > 0; ++bit) {
#pragma unroll
    for (int i = 0; i < WORDS; i += 4) {
      const uint4 four = __ldcs((const uint4*)(lengths + bit * words + word + i));
      const unsigned plane[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        length[i + j] |= (plane[j] >> lane & 1) << bit;
        at[i + j] += __popc(plane[j] & below) << bit;
      }
    }
  }
  for (int k = 0; k < longest; ++k) {
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      if (k < length[i]) sum[i] += vals[at[i] + k] * x[col_idx[at[i] + k]];
    }
  }
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    if (first + i * 32 + lane < rows) y[first + i * 32 + lane] = sum[i];
  }
}
