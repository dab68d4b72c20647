"""The loops in C headers: compilers turn them into SIMD, and all variants give the same bits."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tk_spacy"
HEADERS = sorted({path.parent for path in PACKAGE.rglob("*.h")})
COMPILERS = [name for name in ("gcc", "clang", "clang-14") if shutil.which(name)]
FLAGS = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-std=gnu11"]

# A program that runs every loop on made-up numbers and prints what comes out, to the last bit.
PROGRAM = """\
#include <stdio.h>
#include "simd.h"
#include "lstm_step.h"
enum { N = 1024, WIDTH = 24, ROWS = 3 };
static float lstm[11][4 * ROWS * WIDTH];
static uint8_t rows[5][N], edge[3][N], out[N];
static float weight[N], product[TK_TILE_ROWS * TK_TILE_COLUMNS], left[N * 4], right[N * 16];
static void show(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    printf("%016llx\\n", (unsigned long long)bits);
}
int main(void) {
    uint32_t state = 1;
    for (int i = 0; i < N; i++) {
        for (int r = 0; r < 5; r++) {
            state = state * 1664525u + 1013904223u;
            rows[r][i] = (uint8_t)((state >> 16) % 60);
        }
        weight[i] = (float)((int)(state >> 8) % 1000) / 777.0f;
    }
    for (int i = 0; i < N; i++) {
        for (int r = 0; r < 4; r++) left[4 * i + r] = weight[i] * rows[r][i];
        for (int r = 0; r < 16; r++) right[16 * i + r] = rows[r % 5][(i + r) % N];
    }
    tk_edge edges[2] = {
        {rows[2], rows[3], rows[4], 7, 8, 9}, {rows[3], rows[4], rows[2], 1, 2, 3}
    };
    const uint8_t *nodes[3] = {rows[0], rows[1], rows[2]};
    /* Runs whose parts all have the distance, none of them, some, all the length. */
    memset(edge[1], 8, N);
    memset(edge[1] + TK_RUN, 100, N - TK_RUN);
    memset(edge[2], 100, N);
    memset(edge[2] + 3 * TK_RUN, 9, TK_RUN);
    for (int i = 0; i < TK_RUN; i++) edge[1][2 * TK_RUN + i] = 7 + rows[2][i] % 3;
    for (int i = 0; i < 3 * TK_RUN; i++) edge[0][i] = i < TK_RUN ? 5 : rows[3][i] % 4;
    tk_pair pair = {rows[0], rows[1], edge[0], edge[1], edge[2], 8, 9, 5, 1, 8, 8};
    const uint8_t labels[4] = {0, 1, 5, 200};
    const uint32_t some[4] = {14, 6, 1, 0};  /* the last run has label 0 alone */
    double together[4], alone;
    tk_pair_sums(&pair, labels, some, 4, weight, N, together);
    for (int i = 0; i < 4; i++) {
        const uint32_t everywhere = 15;
        show(together[i]);
        /* On its own, and compared with every part: the same. */
        tk_pair_sums(&pair, labels + i, some + i, 1, weight, N, &alone);
        if (memcmp(&alone, together + i, 8)) return 1;
        tk_pair_sums(&pair, labels + i, &everywhere, 1, weight, N, &alone);
        if (memcmp(&alone, together + i, 8)) return 1;
        double plain = 0, scale = 0;
        for (int k = 0; k < N; k++) {
            double term = weight[k] * (double)(rows[0][k] * rows[1][k] * (1
                + (edge[0][k] == labels[i]) + (edge[1][k] == 8) + (edge[2][k] == 9)));
            plain += term;
            scale += term < 0 ? -term : term;
        }
        if (together[i] - plain > 1e-6 * scale || plain - together[i] > 1e-6 * scale) return 1;
    }
    show(tk_part_sum(nodes, 3, edges, 2, weight, N));
    const uint8_t *some_rows[7] = {rows[0], rows[1], rows[2], rows[3], edge[0], edge[0], edge[0]};
    for (int n = 0; n <= 7; n++) {
        tk_add_rows(out, some_rows, n, 1, N);
        double sum = 0;
        for (int i = 0; i < N; i++) {
            int right_one = 1;
            for (int r = 0; r < n; r++) right_one += some_rows[r][i];
            if ((uint8_t)right_one != out[i]) return 1;
            sum += (i + 1) * out[i];
        }
        show(sum);
    }
    static int32_t column[N];
    for (int i = 0; i < N; i++) column[i] = rows[0][i];
    memset(out, 3, N);
    tk_count_equal(column, N - 5, 7, out);
    for (int i = 0; i < N; i++)
        if (out[i] != 3 + (i < N - 5 && rows[0][i] == 7)) return 1;
    static float of_left[N * 4], of_right[N * 16];
    for (int n = 1; n <= 5; n++) {
        const int n_left = n < 4 ? n : 4;
        tk_left_tile(of_left, rows[0], N, n_left, weight, N);
        tk_right_tile(of_right, rows[0], N, n, N);
        for (int i = 0; i < N; i++) {
            for (int r = 0; r < 4; r++)
                if (of_left[4 * i + r] != (r < n_left ? weight[i] * rows[r][i] : 0)) return 1;
            for (int r = 0; r < 16; r++)
                if (of_right[16 * i + r] != (r < n ? rows[r][i] : 0)) return 1;
        }
    }
    tk_tile(product, left, 4, right, 16, TK_RUN);
    for (int i = 0; i < 64; i++) show(product[i]);
    for (int a = 0; a < 11; a++)
        for (int i = 0; i < 4 * ROWS * WIDTH; i++)
            lstm[a][i] = weight[(a * 97 + i) % N] * (i % 2 ? 1.0f : -1.5f);
    tk_lstm_step(
        lstm[0], lstm[1], lstm[2], lstm[3], lstm[4], lstm[5], lstm[6], lstm[7], ROWS,
        WIDTH);
    for (int a = 4; a < 8; a++)
        for (int i = 0; i < ROWS * WIDTH; i++) show(lstm[a][i]);
    tk_lstm_back(
        lstm[0], lstm[2], lstm[3], lstm[5], lstm[6], lstm[7], lstm[9], lstm[10], ROWS,
        WIDTH);
    for (int i = 0; i < 4 * ROWS * WIDTH; i++) show(lstm[10][i]);
    return 0;
}
"""

needs_x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux", reason="not x86-64 Linux"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lanes") / "program.c"
    path.write_text(PROGRAM)
    return path


def compile_with(compiler: str, source: Path, *flags: str, output: str) -> Path:
    target = source.with_name(output)
    subprocess.run(
        [
            compiler, *FLAGS, *flags, *(f"-I{folder}" for folder in HEADERS), str(source),
            "-o", str(target),
        ],
        check=True,
    )  # fmt: skip
    return target


@pytest.mark.parametrize("compiler", COMPILERS)
def test_all_variants_give_the_same_bits(compiler: str, source: Path) -> None:
    variants = [["-DTK_CLONES="], ["-DTK_CLONES=", "-O1"], []]
    if platform.machine() == "x86_64" and "avx2" in Path("/proc/cpuinfo").read_text().split():
        variants.append(["-DTK_CLONES=", "-mavx2", "-mfma"])
    printed = set()
    for i, flags in enumerate(variants):
        program = compile_with(compiler, source, *flags, output=f"{compiler}-{i}")
        printed.add(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    assert len(printed) == 1
    lines = printed.pop().split()
    assert len(lines) == 4 + 1 + 8 + 64 + 8 * 3 * 24
    assert len(set(lines)) > 500


@needs_x86
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("function", "instructions"),
    [
        ("tk_pair_sums", {"vpmullw", "vcvtdq2ps", "vmulps", "vaddps"}),
        ("tk_count_equal", {"vpcmpeqd"}),
        ("tk_left_tile", {"vmulps"}),
        ("tk_right_tile", {"vcvtdq2ps"}),
        ("tk_part_sum", {"vcvtdq2ps", "vmulps", "vaddps"}),
        ("tk_add_rows", {"vpaddb"}),
        ("tk_tile", {"vmulps", "vaddps"}),
        ("tk_lstm_step", {"vdivps", "vmulps", "vaddps"}),
        ("tk_lstm_back", {"vmulps", "vsubps"}),
    ],
)
def test_loops_become_simd(
    compiler: str, function: str, instructions: set[str], source: Path
) -> None:
    assembly = compile_with(
        compiler, source, "-S", "-DTK_CLONES=__attribute__((used, noinline))", "-mavx2",
        output=f"{compiler}.s",
    ).read_text()  # fmt: skip
    body = re.search(rf"^{function}:(.*?)^\s*\.size\s+{function}", assembly, re.M | re.S)
    assert body is not None
    wide = {line.split()[0] for line in body[1].splitlines() if "%ymm" in line}
    assert instructions <= wide
