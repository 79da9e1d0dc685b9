"""Listings as text: instructions, loops, versions of a loop, source lines, classes."""

from __future__ import annotations

import pytest

from kernelwright.verifier.profile.hot_code import code_of_listing
from kernelwright.verifier.profile.mix import (
    OpClass,
    flops_of,
    kind_of,
    mix_of,
    width_of,
)
from kernelwright.verifier.profile.sass import Instruction, listings
from kernelwright.verifier.profile.tensor_cores import tile_of

TEXT = """
//--------------------- .text.row                 --------------------------
	.section	.text.row,"ax",@progbits
.text.row:
	//## File "/candidate.cu", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
.L_x_0:
	//## File "/usr/include/mma.hpp", line 91 inlined at "/candidate.cu", line 5
	//## File "/candidate.cu", line 5
        /*0020*/                   LDG.E R2, desc[UR4][R4.64] ;
        /*0030*/                   FFMA R3, R2, R2, R3 ;
.L_x_2:
	//## File "/candidate.cu", line 6
	//## File "/candidate.cu", line 5
        /*0040*/               @P2 LDS.128 R8, [R3] ;
        /*0050*/              @P1  BRA `(.L_x_2) ;
	//## File "/candidate.cu", line 5
        /*0060*/                   BRA.U UP0, `(.L_x_0) ;
.L_x_1:
.L_x_3:
	//## File "/candidate.cu", line 5
        /*0070*/                   FFMA R3, R2, R2, R3 ;
        /*0080*/               @P0 BRA P1, `(.L_x_3) ;
	//## File "/candidate.cu", line 9
        /*0090*/                   STG.E.64 desc[UR4][R4.64], R2 ;
        /*00a0*/                   EXIT ;
.L_x_9:
        /*00b0*/                   BRA `(.L_x_9);
        /*00c0*/                   NOP;
	.section	.text._Z3putIfEvPT_,"ax",@progbits
        /*0000*/                   EXIT ;
"""


def test_loops_and_lines() -> None:
    found = listings(TEXT)
    assert list(found) == ["row", "_Z3putIfEvPT_"]
    row = found["row"]
    assert len(row.instructions) == 11, "padding is never reached"
    assert [(loop.first, loop.last, loop.depth) for loop in row.loops] == [
        (0x20, 0x60, 1),
        (0x40, 0x50, 2),
        (0x70, 0x80, 1),
    ]
    assert [loop.is_repeated for loop in row.loops] == [False, False, True]
    assert row.depth == 2
    by_address = {i.address: i for i in row.instructions}
    assert by_address[0x20].line == 5
    assert by_address[0x40].line == 6
    assert by_address[0x90].line == 9
    assert row.loop_of(by_address[0x40]) == row.loops[1]
    assert row.loop_of(by_address[0x90]) is None
    assert 0x70 not in {i.address for i, _ in row.counted}


def test_the_mix_counts_a_loop_once() -> None:
    mix = mix_of(listings(TEXT)["row"])
    assert mix.everywhere[OpClass.FP32] == 1
    assert mix.in_loops == {
        OpClass.LOAD: 1,
        OpClass.FP32: 1,
        OpClass.SHARED: 1,
        OpClass.CONTROL: 2,
    }
    assert mix.load_bytes == 4
    assert mix.store_bytes == 8
    assert mix.scalar_lines == (5,)
    assert mix.spill_lines == ()
    assert mix.share(OpClass.FP32) == pytest.approx(1 / 3)


DIVERGED = """
	.section	.text.k,"ax",@progbits
.L_x_0:
        /*0000*/                   BRA.DIV UR8, `(.L_x_4) ;
        /*0010*/                   SHFL.IDX PT, R13, R30, R33, 0x1f ;
.L_x_1:
        /*0020*/                   LDG.E R2, desc[UR4][R4.64] ;
        /*0030*/               @P0 BRA `(.L_x_0) ;
        /*0040*/                   BSSY B0, `(.L_x_2) ;
        /*0050*/              @!P0 EXIT ;
        /*0060*/                   BRA `(.L_x_3) ;
.L_x_2:
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   EXIT ;
.L_x_4:
        /*0090*/                   WARPSYNC.COLLECTIVE R34, `(.L_x_5) ;
        /*00a0*/                   SHFL.IDX P1, R13, R43, R36, R41 ;
.L_x_5:
        /*00b0*/                   BRA `(.L_x_1) ;
"""


def test_copies_for_diverged_warps_are_left_out() -> None:
    code = listings(DIVERGED)["k"]
    assert [i.address for i in code.instructions] == [16 * n for n in range(9)]
    assert [(loop.first, loop.last) for loop in code.loops] == [(0, 0x30)]
    assert mix_of(code).everywhere[OpClass.WARP] == 1
    # Where a jump may go anywhere nothing is left out.
    anywhere = DIVERGED.replace("BSSY B0, `(.L_x_2)", "BRX R2 -0x50")
    assert len(listings(anywhere)["k"].instructions) == 12


def test_nothing_is_a_listing() -> None:
    assert listings("") == {}
    assert listings("garbage\n        /*0000*/    EXIT ;\n.L_x:\n") == {}


@pytest.mark.parametrize(
    ("opcode", "kind", "width"),
    [
        ("LDG.E", OpClass.LOAD, 4),
        ("LDG.E.128.CONSTANT", OpClass.LOAD, 16),
        ("LDG.E.U8", OpClass.LOAD, 1),
        ("LDG.E.ENL2.256", OpClass.LOAD, 32),
        ("STG.E.64", OpClass.STORE, 8),
        ("LDGSTS.E.BYPASS.128", OpClass.ASYNC, 16),
        ("LDSM.16.M88.4", OpClass.SHARED, 16),
        ("LDSM.16.MT88.2", OpClass.SHARED, 8),
        ("STSM.16.M88", OpClass.SHARED, 4),
        ("MOVM.16.MT88", OpClass.OTHER, 2),
        ("STL.64", OpClass.LOCAL, 8),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", OpClass.ATOMIC, 4),
        ("BAR.SYNC.DEFER_BLOCKING", OpClass.BARRIER, 4),
        ("WARPSYNC.ALL", OpClass.WARP_SYNC, 4),
        ("IMAD.WIDE.U32", OpClass.INTEGER, 4),
        ("MUFU.EX2", OpClass.SPECIAL, 4),
        ("F2FP.BF16.F32.PACK_AB", OpClass.CONVERT, 4),
        ("SHFL.BFLY", OpClass.WARP, 4),
        ("SOMETHING.NEW", OpClass.OTHER, 4),
    ],
)
def test_classes_and_widths(opcode: str, kind: OpClass, width: int) -> None:
    instruction = Instruction(0, opcode, "R1, R2")
    assert kind_of(instruction) is kind
    assert width_of(instruction) == width


@pytest.mark.parametrize(
    ("opcode", "operands", "tile", "flops"),
    [
        ("FFMA", "R1, R2, R3, R4", None, 2),
        ("FFMA2", "R2, R4, R6, R8", None, 4),
        ("HFMA2.MMA", "R13, -RZ, RZ, 0, 0", None, 0),
        ("HMMA.16816.F32", "R4, R8, R12, R4", (16, 8, 16), 128),
        ("HMMA.1688.F32.TF32", "R4, R8, R12, R4", (16, 8, 8), 64),
        ("HGMMA.64x256x16.F32", "R24, gdesc[UR4]", (64, 256, 16), 4096),
        ("UTCHMMA", "gdesc[UR4]", None, 0),
        ("LDG.E", "R2, [R4]", None, 0),
    ],
)
def test_arithmetic(
    opcode: str, operands: str, tile: tuple[int, int, int] | None, flops: float
) -> None:
    instruction = Instruction(0, opcode, operands)
    assert tile_of(instruction) == tile
    assert flops_of(instruction) == flops


def test_the_deepest_loop_is_what_people_are_shown() -> None:
    listing = listings(TEXT)["row"]
    (code,) = code_of_listing("row", listing, {})
    assert code.what == "SASS of row: its deepest loop, within another"
    assert {each.warps for each in code.instructions} == {None}
    counts = {each.address: float(each.address) for each in listing.instructions}
    (counted,) = code_of_listing("row", listing, counts)
    assert [each.warps for each in counted.instructions] == [64.0, 80.0]
    assert [(each.text, each.line) for each in code.instructions] == [
        ("LDS.128 R8, [R3]", 6),
        ("BRA `(.L_x_2)", 6),
    ]
    assert code_of_listing("row", None, {}) == ()
