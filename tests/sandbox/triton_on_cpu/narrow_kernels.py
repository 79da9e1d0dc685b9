"""Kernels on narrow types in the style of published tutorials, and mistakes they are made with."""

from __future__ import annotations

MATMUL = """
import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    ACC: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = accumulator.to(c_ptr.dtype.element_ty)
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


def matmul(a, b, c, acc=tl.float32, precision=None):
    M, K = a.shape
    K, N = b.shape
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32),)
    matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), acc, precision,
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, GROUP_M=2,
    )
"""

SOFTMAX = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(output_ptr, input_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(input_ptr + row * stride + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(output_ptr + row * stride + cols, y, mask=cols < n_cols)


def softmax(x, y):
    rows, n_cols = x.shape
    softmax_kernel[(rows,)](y, x, n_cols, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))
"""

MATVEC = '''
import torch
import triton
import triton.language as tl


@triton.jit
def matvec_w4a16(
    x_ptr, qweight_ptr, scales_ptr, zeros_ptr, y_ptr, N, K,
    GROUP: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """y = W x: eight codes of a column in a word, along K; a scale and a zero point per group."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    shift = (k % 8) * 4
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for first in range(0, K, BLOCK_K):
        at = first + k
        words = tl.load(
            qweight_ptr + (at // 8)[None, :] * N + n[:, None], mask=n[:, None] < N, other=0
        )
        codes = (words >> shift[None, :]) & 0xF
        group = (at // GROUP)[None, :] * N + n[:, None]
        scale = tl.load(scales_ptr + group, mask=n[:, None] < N, other=0.0)
        zero = tl.load(zeros_ptr + group, mask=n[:, None] < N, other=0)
        w = (codes - zero).to(tl.float16) * scale
        x = tl.load(x_ptr + at)
        acc += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], axis=1)
    tl.store(y_ptr + n, acc.to(y_ptr.dtype.element_ty), mask=n < N)


def matvec(x, qweight, scales, zeros, y):
    K, N = x.shape[0], y.shape[0]
    matvec_w4a16[(triton.cdiv(N, 16),)](
        x, qweight, scales, zeros, y, N, K, GROUP=64, BLOCK_N=16, BLOCK_K=64
    )
'''
