//! base csr
//! param BITS 16
//! require BITS == 16 or BITS == 32
//! require 4 * rows * longest <= 5 * nnz
//! require BITS == 32 or cols <= 65536 or (reach < 32768 and rows < cols + 32768)
//! size pitch 32*ceildiv(rows,32)
//! derived codes ushort BITS//16*longest*pitch
//! derived packed real longest*pitch
//! prepare ell4_pack grid=ceildiv(rows,32) block=32,8

// ELLPACK (Bell and Garland, 2009) for rows of about equal length, in groups of four entries, so
// that a thread reads four neighbouring entries of a row at once, and the threads of a warp lie
// side by side. Group g of row r begins at 4 * (g * pitch + r). The up to three entries beyond full
// groups lie entry by entry: entry k of row r at k * pitch + r. Columns are kept as codes of BITS
// bits: code + origin(row, cols) is the column; with 16 bits all columns are below 65536 or near
// the diagonal. Cast codes to const Code*. Padding has the value 0 and a column in range.

#if BITS == 16
typedef unsigned short Code;
typedef ushort4 Code4;
#else
typedef int Code;
typedef int4 Code4;
#endif

// The column that code 0 stands for.
__device__ int origin(int row, int cols) { return BITS == 32 || cols <= 65536 ? 0 : row - 32768; }

// The size `pitch`, which may be past int.
__device__ size_t pitch_of(int rows) { return ((size_t)rows + 31) / 32 * 32; }

extern "C" __global__ void ell4_pack(int rows, int cols, int longest,
                                     const int* __restrict__ row_ptr,
                                     const int* __restrict__ col_idx, const real* __restrict__ vals,
                                     unsigned short* codes, real* packed) {
  const long long row = 32LL * blockIdx.x + threadIdx.x;
  const size_t pitch = pitch_of(rows);
  const int begin = row < rows ? row_ptr[row] : 0;
  const int length = row < rows ? row_ptr[row + 1] - begin : 0;
  // Padding repeats the last column, whose x is near by; an empty row's lies on the diagonal.
  const int last = length > 0 ? col_idx[begin + length - 1] : (int)min(row, cols - 1LL);
  for (int k = threadIdx.y; k < longest; k += blockDim.y) {
    const bool grouped = k < longest / 4 * 4;
    const size_t slot = grouped ? 4 * (k / 4 * pitch + row) + k % 4 : k * pitch + row;
    ((Code*)codes)[slot] = (k < length ? col_idx[begin + k] : last) - origin(row, cols);
    packed[slot] = k < length ? vals[begin + k] : 0;
  }
}
