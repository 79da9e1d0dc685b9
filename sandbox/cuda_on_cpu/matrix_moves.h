// SPDX-License-Identifier: Apache-2.0
// ldmatrix and stmatrix: 8 x 8 matrices of 16 bits between shared memory and the lanes of a warp (PTX
// ISA). Lane 8 i + r names row r of matrix i; lane l holds elements 2 (l % 4) and the next of row l / 4,
// or of that column.
#pragma once

namespace kw::tensor {

struct Row {
    std::uint16_t of[8];
};

template <int COUNT, bool IS_TRANSPOSED> KW_UNSEEN void load_rows(Parts parts, unsigned lanes) {
    require_whole(parts, lanes);
    for (unsigned lane = 0; lane < 32; ++lane) {
        auto* const out = static_cast<std::uint32_t*>(parts[lane]->out);
        const unsigned line = lane / 4, first = lane % 4 * 2;
        const auto element = [&](int matrix, unsigned row, unsigned column) -> std::uint32_t {
            return static_cast<const Row*>(parts[unsigned(matrix) * 8 + row]->in)->of[column];
        };
        for (int i = 0; i < COUNT; ++i)
            out[i] = IS_TRANSPOSED
                         ? element(i, first, line) | element(i, first + 1, line) << 16
                         : element(i, line, first) | element(i, line, first + 1) << 16;
    }
}

// What one lane gives to a store, and the row that it then writes.
template <int COUNT, bool IS_TRANSPOSED> KW_UNSEEN void store_rows(Parts parts, unsigned lanes) {
    require_whole(parts, lanes);
    for (unsigned lane = 0; lane < COUNT * 8; ++lane) {
        auto* const out = static_cast<Row*>(parts[lane]->out);
        const unsigned matrix = lane / 8, row = lane % 8;
        for (unsigned column = 0; column < 8; ++column) {
            const unsigned line = IS_TRANSPOSED ? column : row, place = IS_TRANSPOSED ? row : column;
            const auto* given = static_cast<const std::uint32_t*>(parts[line * 4 + place / 2]->in);
            out->of[column] = std::uint16_t(given[matrix] >> place % 2 * 16);
        }
    }
}

// Each lane reads its row before the warp meets: the meeting orders no memory.
template <int COUNT, bool IS_TRANSPOSED>
KW_UNSEEN void load_matrices(std::uint32_t (&out)[COUNT], const void* at, int line) {
    Row row;
    if (lane() < COUNT * 8) {
        require_aligned(at, sizeof row, line);
        note_read(at, sizeof row, line);
        std::memcpy(&row, at, sizeof row);
    }
    rendezvous(0xffffffffu, load_rows<COUNT, IS_TRANSPOSED>, {&row, out, sizeof row, line}, line);
}

template <int COUNT, bool IS_TRANSPOSED>
KW_UNSEEN void store_matrices(void* at, const std::uint32_t (&given)[COUNT], int line) {
    Row row;
    rendezvous(0xffffffffu, store_rows<COUNT, IS_TRANSPOSED>, {given, &row, sizeof row, line}, line);
    if (lane() >= COUNT * 8) return;
    require_aligned(at, sizeof row, line);
    note_write(at, sizeof row, line);
    std::memcpy(at, &row, sizeof row);
}

}  // namespace kw::tensor
