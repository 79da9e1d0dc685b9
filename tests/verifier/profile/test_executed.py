"""How often instructions execute, from counted accesses, on listings whose answer is plain."""

from __future__ import annotations

import pytest

from kernelwright.sandbox.run.memory_access import Accesses, LaunchCount
from kernelwright.verifier.profile.executed import Counts, Work, work_of
from kernelwright.verifier.profile.sass import Listing, listings

WARPS = 100


def listing(*rows: str) -> Listing:
    """`12 LDG.E R2, [R4]` is an instruction of line 12; the rest are labels."""
    lines = ['	.section	.text.k,"ax",@progbits']
    address = 0
    for row in rows:
        if row.endswith(":"):
            lines.append(row)
            continue
        line, _, words = row.partition(" ")
        lines += [
            f'	//## File "/candidate.cu", line {line}',
            f"        /*{address:04x}*/ {words} ;",
        ]
        address += 16
    return listings("\n".join(lines))["k"]


def access(
    line: int,
    requests: int,
    *,
    space: str = "global",
    operation: str = "read",
    size: int = 4,
    sectors: int = 0,
) -> Accesses:
    ideal = requests * size
    return Accesses(
        line,
        space,
        operation,
        size,
        requests,
        32 * requests,
        sectors or ideal,
        ideal,
        requests,
        requests,
        sectors or ideal,
    )


def worked(code: Listing, *accesses: Accesses, counted: int = 50, flops: float = 0) -> Work:
    """Of a grid of fifty blocks of two warps."""
    count = LaunchCount(0, 50, counted, 2 * counted, 1.0, accesses)
    return work_of(code, count, warps=WARPS, flops=flops)


def times(work: Work) -> list[float]:
    return [work.executed[address] for address in sorted(work.executed)]


UNROLLED = listing(
    "3 IMAD R1, R2, R3, R4",
    ".L_main:",
    "5 LDG.E R2, [R4]",
    "5 LDG.E R3, [R4+0x4]",
    "5 LDG.E R5, [R4+0x8]",
    "5 LDG.E R6, [R4+0xc]",
    "6 FADD R7, R7, R2",
    "4 @P0 BRA `(.L_main)",
    "5 @P1 LDG.E R2, [R4]",
    "6 FADD R7, R7, R2",
    "9 STG.E [R8], R7",
)


def test_an_unrolled_loop_does_as_many_passes_as_its_loads_need() -> None:
    work = worked(UNROLLED, access(5, 2000), access(9, WARPS, operation="write"))
    # Four loads a pass; the rest of the loop outside of it is the same work again.
    assert times(work) == [100, 500, 500, 500, 500, 500, 500, 0, 100, 100]
    assert list(work.passes.values()) == [500]
    assert work.requested == 2000 * 128 + 100 * 128


def test_watched_blocks_stand_for_the_rest() -> None:
    whole = worked(UNROLLED, access(5, 2000), access(9, WARPS, operation="write"))
    part = worked(UNROLLED, access(5, 400), access(9, 20, operation="write"), counted=10)
    assert times(part) == times(whole)
    assert (part.sectors, part.wavefronts) == (whole.sectors, whole.wavefronts)


BRANCHES = listing(
    ".L_loop:",
    "4 @P0 BRA `(.L_else)",
    "5 LDG.E.128 R4, [R2]",
    "5 FADD R7, R7, R4",
    "6 BRA `(.L_join)",
    ".L_else:",
    "8 LDG.E R4, [R2]",
    "8 FADD R7, R7, R4",
    ".L_join:",
    "9 @P1 BRA `(.L_loop)",
)


def test_a_branch_that_is_not_taken_is_not_charged() -> None:
    work = worked(BRANCHES, access(5, 300, size=16))
    assert times(work) == [300, 300, 300, 300, 0, 0, 300]
    both = worked(BRANCHES, access(5, 300, size=16), access(8, 40))
    assert times(both) == [300, 300, 300, 300, 40, 40, 300]


def test_lines_of_one_statement_may_be_counted_as_one() -> None:
    code = listing(
        ".L_loop:",
        "5 LDS R2, [R4]",
        "6 LDS R3, [R4+0x80]",
        "7 FFMA R7, R2, R3, R7",
        "8 @P0 BRA `(.L_loop)",
    )
    assert times(worked(code, access(5, 600, space="shared"))) == [300] * 4
    # Where g++ has it on a line without any access of the code's, the nearest one is meant.
    assert times(worked(code, access(4, 600, space="shared"))) == [600, 0, 600, 600]
    assert times(worked(code, access(40, 600, space="shared"))) == [0] * 4


def test_an_asynchronous_copy_is_told_by_what_it_reads() -> None:
    code = listing(
        ".L_loop:",
        "5 LDGSTS.E.128 [R4], [R2]",
        "6 STS [R4], RZ",
        "8 @P0 BRA `(.L_loop)",
    )
    copied = access(5, 700, size=16), access(5, 700, size=16, space="shared", operation="write")
    work = worked(code, *copied)
    assert times(work) == [700, 0, 700]
    # One turn for each request's share of four sectors on either side.
    assert work.wavefronts == 700 + 700 * 16 / 4


def test_loops_without_accesses_do_what_flops_are_left() -> None:
    code = listing(
        "3 LDG.E R2, [R4]",
        ".L_loop:",
        "5 FFMA R3, R2, R2, R3",
        "5 @P0 BRA `(.L_loop)",
        "6 FADD R3, R3, R3",
        "9 STG.E [R8], R3",
    )
    accesses = access(3, WARPS), access(9, WARPS, operation="write")
    flops = 32.0 * WARPS * (1 + 2 * 25)
    assert times(worked(code, *accesses, flops=flops)) == [100, 2500, 2500, 100, 100]
    assert times(worked(code, *accesses)) == [100] * 5


def test_a_loop_around_others_is_passed_between_their_numbers() -> None:
    code = listing(
        ".L_outer:",
        "3 IADD3 R1, R1, 0x1, RZ",
        ".L_inner:",
        "5 LDS R2, [R4]",
        "5 @P0 BRA `(.L_inner)",
        "6 @P1 BRA `(.L_outer)",
    )
    work = worked(code, access(5, 6400, space="shared"))
    assert times(work) == [800, 6400, 6400, 800]


def test_wider_accesses_of_the_device_need_fewer_requests() -> None:
    code = listing("3 LDG.E.128 R4, [R2]")
    # g++ read four words apart from each other, of one sector for each lane.
    work = worked(code, access(3, 4 * WARPS, sectors=4 * WARPS * 16))
    assert times(work) == [100]
    assert work.sectors == 1600


def test_counts_of_another_workload_are_matched_by_kernel() -> None:
    launches = tuple(LaunchCount(kernel, 1, 1, 1, 1.0, ()) for kernel in (2, 0))
    here, elsewhere = Counts("a", launches, True), Counts("b", launches, False)
    assert here.find_count(0, 2) is elsewhere.find_count(5, 2) is launches[0]
    assert here.find_count(0, 0) is here.find_count(2, 0) is elsewhere.find_count(0, 1) is None


@pytest.mark.parametrize("line", [0, 77])
def test_accesses_on_unknown_lines_are_part_of_the_sums_alone(line: int) -> None:
    work = worked(UNROLLED, access(line, 10))
    assert work.sectors == 40
    assert work.executed[0] == WARPS


FRAGMENTS = listing(
    ".L_loop:",
    "5 LDG.E.128 R4, [R2]",
    "5 STS.128 [R8], R4",
    "6 BAR.SYNC",
    "7 LD.E R12, [R10]",
    "7 LD.E R13, [R10+0x4]",
    "8 HMMA.1688.F32 R16, R12, R13, R16",
    "9 @P0 BRA `(.L_loop)",
    "11 ST.E [R20], R16",
)


def test_generic_accesses_go_where_the_emulation_saw_them_go() -> None:
    """Fragments of wmma: by their address alone it is decided that they come from shared memory."""
    seen = (access(5, 300, size=16), access(5, 300, size=16, space="shared", operation="write"))
    loads = access(7, 1200, size=2, space="shared")
    work = worked(FRAGMENTS, *seen, loads, access(11, WARPS, operation="write"))
    # 1,200 of 2 bytes are 300 passes over 8.
    assert times(work) == [300, 300, 300, 300, 300, 300, 300, 100]
    assert work.near == {0x30, 0x40}
    elsewhere = worked(FRAGMENTS, *seen, access(7, 600), access(11, WARPS, operation="write"))
    assert times(elsewhere) == times(work)
    assert elsewhere.near == set()


def test_accesses_whose_line_is_not_known_take_nothing_from_those_that_have_none() -> None:
    """A loop whose loads were counted on no line runs as often as it goes round."""
    code = listing(
        ".L_loop:",
        "5 LDG.E R4, [R2]",
        "6 @P1 BRA `(.L_skip)",
        "7 LDS R5, [R6]",
        "7 FFMA R7, R4, R5, R7",
        ".L_skip:",
        "9 @P0 BRA `(.L_loop)",
    )
    known = worked(code, access(5, 300))
    assert times(known) == [300, 300, 0, 0, 300]
    lost = worked(code, access(5, 300), access(0, 300, space="shared"))
    assert times(lost) == [300, 300, 300, 300, 300]
