"""A product by as many programs as there are multiprocessors, each with many tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M: tl.constexpr):
    group_id = tile_id // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + (tile_id % group_size_m)
    pid_n = (tile_id % num_pid_in_group) // group_size_m
    return pid_m, pid_n


@triton.jit
def matmul_kernel_persistent(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    NUM_SMS: tl.constexpr,
):
    start_pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    num_tiles = num_pid_m * num_pid_n
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    offs_k = tl.arange(0, BLOCK_K)
    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS, flatten=True):
        pid_m, pid_n = _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
        offs_am = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_bn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        offs_am = tl.where(offs_am < M, offs_am, 0)
        offs_bn = tl.where(offs_bn < N, offs_bn, 0)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(k_tiles):
            k = ki * BLOCK_K + offs_k
            a = tl.load(
                a_ptr + offs_am[:, None] * stride_am + k[None, :], mask=k[None, :] < K, other=0.0
            )
            b = tl.load(
                b_ptr + k[:, None] * stride_bk + offs_bn[None, :], mask=k[:, None] < K, other=0.0
            )
            acc = tl.dot(a, b, acc, input_precision="ieee")
        offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
        tl.store(c_ptr + stride_cm * offs_cm[:, None] + offs_cn[None, :], acc, mask=c_mask)


def run(A, B):
    M, K = A.shape
    N = B.shape[1]
    NUM_SMS = torch.cuda.get_device_properties("cuda").multi_processor_count
    major, _ = torch.cuda.get_device_capability()
    C = torch.empty((M, N), device=A.device, dtype=A.dtype)
    grid = lambda META: (  # noqa: E731
        min(NUM_SMS, triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"])),
    )
    matmul_kernel_persistent[grid](
        A,
        B,
        C,
        M,
        N,
        K,
        A.stride(0),
        B.stride(0),
        C.stride(0),
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
        GROUP_SIZE_M=8,
        NUM_SMS=NUM_SMS,
        num_stages=3 if major >= 9 else 2,
    )
    return C
