/** BLAKE3's compression of one 64-byte block. */
export function compress(
  value: Int32Array,
  message: Int32Array,
  first: number,
  counter: number,
  bytes: number,
  flags: number,
): void {
  let v0 = value[0]!;
  let v1 = value[1]!;
  let v2 = value[2]!;
  let v3 = value[3]!;
  let v4 = value[4]!;
  let v5 = value[5]!;
  let v6 = value[6]!;
  let v7 = value[7]!;
  let v8 = 0x6a09e667 | 0;
  let v9 = 0xbb67ae85 | 0;
  let v10 = 0x3c6ef372 | 0;
  let v11 = 0xa54ff53a | 0;
  let v12 = counter | 0;
  let v13 = 0;
  let v14 = bytes | 0;
  let v15 = flags | 0;
  let m0 = message[first + 0]!;
  let m1 = message[first + 1]!;
  let m2 = message[first + 2]!;
  let m3 = message[first + 3]!;
  let m4 = message[first + 4]!;
  let m5 = message[first + 5]!;
  let m6 = message[first + 6]!;
  let m7 = message[first + 7]!;
  let m8 = message[first + 8]!;
  let m9 = message[first + 9]!;
  let m10 = message[first + 10]!;
  let m11 = message[first + 11]!;
  let m12 = message[first + 12]!;
  let m13 = message[first + 13]!;
  let m14 = message[first + 14]!;
  let m15 = message[first + 15]!;
  for (let round = 0; ; round++) {
    v0 = (((v0 + m0) | 0) + v4) | 0;
    v1 = (((v1 + m2) | 0) + v5) | 0;
    v2 = (((v2 + m4) | 0) + v6) | 0;
    v3 = (((v3 + m6) | 0) + v7) | 0;
    v12 = rotate16(v12 ^ v0);
    v13 = rotate16(v13 ^ v1);
    v14 = rotate16(v14 ^ v2);
    v15 = rotate16(v15 ^ v3);
    v8 = (v8 + v12) | 0;
    v9 = (v9 + v13) | 0;
    v10 = (v10 + v14) | 0;
    v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8);
    v5 = rotate12(v5 ^ v9);
    v6 = rotate12(v6 ^ v10);
    v7 = rotate12(v7 ^ v11);
    v0 = (((v0 + m1) | 0) + v4) | 0;
    v1 = (((v1 + m3) | 0) + v5) | 0;
    v2 = (((v2 + m5) | 0) + v6) | 0;
    v3 = (((v3 + m7) | 0) + v7) | 0;
    v12 = rotate8(v12 ^ v0);
    v13 = rotate8(v13 ^ v1);
    v14 = rotate8(v14 ^ v2);
    v15 = rotate8(v15 ^ v3);
    v8 = (v8 + v12) | 0;
    v9 = (v9 + v13) | 0;
    v10 = (v10 + v14) | 0;
    v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8);
    v5 = rotate7(v5 ^ v9);
    v6 = rotate7(v6 ^ v10);
    v7 = rotate7(v7 ^ v11);
    v0 = (((v0 + m8) | 0) + v5) | 0;
    v1 = (((v1 + m10) | 0) + v6) | 0;
    v2 = (((v2 + m12) | 0) + v7) | 0;
    v3 = (((v3 + m14) | 0) + v4) | 0;
    v15 = rotate16(v15 ^ v0);
    v12 = rotate16(v12 ^ v1);
    v13 = rotate16(v13 ^ v2);
    v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;
    v11 = (v11 + v12) | 0;
    v8 = (v8 + v13) | 0;
    v9 = (v9 + v14) | 0;
    v5 = rotate12(v5 ^ v10);
    v6 = rotate12(v6 ^ v11);
    v7 = rotate12(v7 ^ v8);
    v4 = rotate12(v4 ^ v9);
    v0 = (((v0 + m9) | 0) + v5) | 0;
    v1 = (((v1 + m11) | 0) + v6) | 0;
    v2 = (((v2 + m13) | 0) + v7) | 0;
    v3 = (((v3 + m15) | 0) + v4) | 0;
    v15 = rotate8(v15 ^ v0);
    v12 = rotate8(v12 ^ v1);
    v13 = rotate8(v13 ^ v2);
    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;
    v11 = (v11 + v12) | 0;
    v8 = (v8 + v13) | 0;
    v9 = (v9 + v14) | 0;
    v5 = rotate7(v5 ^ v10);
    v6 = rotate7(v6 ^ v11);
    v7 = rotate7(v7 ^ v8);
    v4 = rotate7(v4 ^ v9);

    if (round === 6) break;
    const n0 = m0;
    const n1 = m1;
    const n2 = m2;
    const n3 = m3;
    const n4 = m4;
    const n5 = m5;
    const n6 = m6;
    const n7 = m7;
    const n8 = m8;
    const n9 = m9;
    const n10 = m10;
    const n11 = m11;
    const n12 = m12;
    const n13 = m13;
    const n14 = m14;
    const n15 = m15;
    m0 = n2;
    m1 = n6;
    m2 = n3;
    m3 = n10;
    m4 = n7;
    m5 = n0;
    m6 = n4;
    m7 = n13;
    m8 = n1;
    m9 = n11;
    m10 = n12;
    m11 = n5;
    m12 = n9;
    m13 = n14;
    m14 = n15;
    m15 = n8;
  }
  value[0] = v0 ^ v8;
  value[1] = v1 ^ v9;
  value[2] = v2 ^ v10;
  value[3] = v3 ^ v11;
  value[4] = v4 ^ v12;
  value[5] = v5 ^ v13;
  value[6] = v6 ^ v14;
  value[7] = v7 ^ v15;
}
function rotate16(x: number): number {
  return (x << 16) | (x >>> 16);
}
function rotate12(x: number): number {
  return (x << 20) | (x >>> 12);
}
function rotate8(x: number): number {
  return (x << 24) | (x >>> 8);
}
function rotate7(x: number): number {
  return (x << 25) | (x >>> 7);
}
