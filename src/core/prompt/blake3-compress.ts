/**
 * BLAKE3's compression of one 64-byte block: replaces the 8 words of `value`, the chaining value, by the first 8 words of
 * output. The block is the 16 words of `message` from `first` on; `bytes` of them count.
 *
 *     G(a, b, c, d, x, y):  a += b + x,  d = (d ^ a) >>> 16,  c += d,  b = (b ^ c) >>> 12,
 *                           a += b + y,  d = (d ^ a) >>> 8,   c += d,  b = (b ^ c) >>> 7    (>>> rotates)
 *
 * A round is G on the four columns of a 4 x 4 matrix of words, then on its four diagonals, with the message words in an
 * order that is permuted from round to round. The seven rounds are written out, each as two groups of eight lines: a line
 * is one step of G for four columns, which do not depend on each other, so a processor runs them side by side. As a loop
 * that permutes the words it takes 1.3 times as long.
 */
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
  const m0 = message[first + 0]!;
  const m1 = message[first + 1]!;
  const m2 = message[first + 2]!;
  const m3 = message[first + 3]!;
  const m4 = message[first + 4]!;
  const m5 = message[first + 5]!;
  const m6 = message[first + 6]!;
  const m7 = message[first + 7]!;
  const m8 = message[first + 8]!;
  const m9 = message[first + 9]!;
  const m10 = message[first + 10]!;
  const m11 = message[first + 11]!;
  const m12 = message[first + 12]!;
  const m13 = message[first + 13]!;
  const m14 = message[first + 14]!;
  const m15 = message[first + 15]!;

  // prettier-ignore
  {
    v0 = (v0 + m0  + v4) | 0;   v1 = (v1 + m2  + v5) | 0;   v2 = (v2 + m4  + v6) | 0;   v3 = (v3 + m6  + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m1  + v4) | 0;   v1 = (v1 + m3  + v5) | 0;   v2 = (v2 + m5  + v6) | 0;   v3 = (v3 + m7  + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m8  + v5) | 0;   v1 = (v1 + m10 + v6) | 0;   v2 = (v2 + m12 + v7) | 0;   v3 = (v3 + m14 + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m9  + v5) | 0;   v1 = (v1 + m11 + v6) | 0;   v2 = (v2 + m13 + v7) | 0;   v3 = (v3 + m15 + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
  }
  // prettier-ignore
  {
    v0 = (v0 + m2  + v4) | 0;   v1 = (v1 + m3  + v5) | 0;   v2 = (v2 + m7  + v6) | 0;   v3 = (v3 + m4  + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m6  + v4) | 0;   v1 = (v1 + m10 + v5) | 0;   v2 = (v2 + m0  + v6) | 0;   v3 = (v3 + m13 + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m1  + v5) | 0;   v1 = (v1 + m12 + v6) | 0;   v2 = (v2 + m9  + v7) | 0;   v3 = (v3 + m15 + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m11 + v5) | 0;   v1 = (v1 + m5  + v6) | 0;   v2 = (v2 + m14 + v7) | 0;   v3 = (v3 + m8  + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
  }
  // prettier-ignore
  {
    v0 = (v0 + m3  + v4) | 0;   v1 = (v1 + m10 + v5) | 0;   v2 = (v2 + m13 + v6) | 0;   v3 = (v3 + m7  + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m4  + v4) | 0;   v1 = (v1 + m12 + v5) | 0;   v2 = (v2 + m2  + v6) | 0;   v3 = (v3 + m14 + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m6  + v5) | 0;   v1 = (v1 + m9  + v6) | 0;   v2 = (v2 + m11 + v7) | 0;   v3 = (v3 + m8  + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m5  + v5) | 0;   v1 = (v1 + m0  + v6) | 0;   v2 = (v2 + m15 + v7) | 0;   v3 = (v3 + m1  + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
  }
  // prettier-ignore
  {
    v0 = (v0 + m10 + v4) | 0;   v1 = (v1 + m12 + v5) | 0;   v2 = (v2 + m14 + v6) | 0;   v3 = (v3 + m13 + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m7  + v4) | 0;   v1 = (v1 + m9  + v5) | 0;   v2 = (v2 + m3  + v6) | 0;   v3 = (v3 + m15 + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m4  + v5) | 0;   v1 = (v1 + m11 + v6) | 0;   v2 = (v2 + m5  + v7) | 0;   v3 = (v3 + m1  + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m0  + v5) | 0;   v1 = (v1 + m2  + v6) | 0;   v2 = (v2 + m8  + v7) | 0;   v3 = (v3 + m6  + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
  }
  // prettier-ignore
  {
    v0 = (v0 + m12 + v4) | 0;   v1 = (v1 + m9  + v5) | 0;   v2 = (v2 + m15 + v6) | 0;   v3 = (v3 + m14 + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m13 + v4) | 0;   v1 = (v1 + m11 + v5) | 0;   v2 = (v2 + m10 + v6) | 0;   v3 = (v3 + m8  + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m7  + v5) | 0;   v1 = (v1 + m5  + v6) | 0;   v2 = (v2 + m0  + v7) | 0;   v3 = (v3 + m6  + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m2  + v5) | 0;   v1 = (v1 + m3  + v6) | 0;   v2 = (v2 + m1  + v7) | 0;   v3 = (v3 + m4  + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
  }
  // prettier-ignore
  {
    v0 = (v0 + m9  + v4) | 0;   v1 = (v1 + m11 + v5) | 0;   v2 = (v2 + m8  + v6) | 0;   v3 = (v3 + m15 + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m14 + v4) | 0;   v1 = (v1 + m5  + v5) | 0;   v2 = (v2 + m12 + v6) | 0;   v3 = (v3 + m1  + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m13 + v5) | 0;   v1 = (v1 + m0  + v6) | 0;   v2 = (v2 + m2  + v7) | 0;   v3 = (v3 + m4  + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m3  + v5) | 0;   v1 = (v1 + m10 + v6) | 0;   v2 = (v2 + m6  + v7) | 0;   v3 = (v3 + m7  + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
  }
  // prettier-ignore
  {
    v0 = (v0 + m11 + v4) | 0;   v1 = (v1 + m5  + v5) | 0;   v2 = (v2 + m1  + v6) | 0;   v3 = (v3 + m8  + v7) | 0;
    v12 = rotate16(v12 ^ v0);   v13 = rotate16(v13 ^ v1);   v14 = rotate16(v14 ^ v2);   v15 = rotate16(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate12(v4 ^ v8 );    v5 = rotate12(v5 ^ v9 );    v6 = rotate12(v6 ^ v10);    v7 = rotate12(v7 ^ v11);
    v0 = (v0 + m15 + v4) | 0;   v1 = (v1 + m0  + v5) | 0;   v2 = (v2 + m9  + v6) | 0;   v3 = (v3 + m6  + v7) | 0;
    v12 = rotate8(v12 ^ v0);    v13 = rotate8(v13 ^ v1);    v14 = rotate8(v14 ^ v2);    v15 = rotate8(v15 ^ v3);
    v8  = (v8  + v12) | 0;      v9  = (v9  + v13) | 0;      v10 = (v10 + v14) | 0;      v11 = (v11 + v15) | 0;
    v4 = rotate7(v4 ^ v8 );     v5 = rotate7(v5 ^ v9 );     v6 = rotate7(v6 ^ v10);     v7 = rotate7(v7 ^ v11);

    v0 = (v0 + m14 + v5) | 0;   v1 = (v1 + m2  + v6) | 0;   v2 = (v2 + m3  + v7) | 0;   v3 = (v3 + m7  + v4) | 0;
    v15 = rotate16(v15 ^ v0);   v12 = rotate16(v12 ^ v1);   v13 = rotate16(v13 ^ v2);   v14 = rotate16(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate12(v5 ^ v10);    v6 = rotate12(v6 ^ v11);    v7 = rotate12(v7 ^ v8 );    v4 = rotate12(v4 ^ v9 );
    v0 = (v0 + m10 + v5) | 0;   v1 = (v1 + m12 + v6) | 0;   v2 = (v2 + m4  + v7) | 0;   v3 = (v3 + m13 + v4) | 0;
    v15 = rotate8(v15 ^ v0);    v12 = rotate8(v12 ^ v1);    v13 = rotate8(v13 ^ v2);    v14 = rotate8(v14 ^ v3);
    v10 = (v10 + v15) | 0;      v11 = (v11 + v12) | 0;      v8  = (v8  + v13) | 0;      v9  = (v9  + v14) | 0;
    v5 = rotate7(v5 ^ v10);     v6 = rotate7(v6 ^ v11);     v7 = rotate7(v7 ^ v8 );     v4 = rotate7(v4 ^ v9 );
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
