// tries: lets half a block wait for the other half, which waits for it
// caught by: time limit
// status: timeout
//! op spmv
//! format csr
//! workspace flag int 1 zero
//! launch k grid=1 block=64

extern "C" __global__ void k(int* flag, real* y) {
  if (threadIdx.x < 32) {
    __syncthreads();
    *(volatile int*)flag = 1;
  } else {
    while (*(volatile int*)flag == 0);
    __syncthreads();
  }
  y[threadIdx.x] = 0;
}
