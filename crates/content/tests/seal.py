"""Prints the vectors of seal.rs, from BLAKE3 and ChaCha written down plainly a second time.

BLAKE3: O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020, section 2. ChaCha: RFC 8439, section 2.3, with
the number of rounds as an argument. Before it prints, it holds both against vectors that others published.
"""

import struct

MASK = 0xFFFFFFFF
IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED, CONTEXT, MATERIAL = 1, 2, 4, 8, 16, 32, 64


def rotate_right(word, by):
    return (word >> by | word << (32 - by)) & MASK


def compress(cv, block, counter, length, flags):
    v = cv[:8] + IV[:4] + [counter & MASK, counter >> 32, length, flags]
    words = list(struct.unpack("<16I", block.ljust(64, b"\0")))

    def mix(a, b, c, d, x, y):
        v[a] = (v[a] + v[b] + x) & MASK
        v[d] = rotate_right(v[d] ^ v[a], 16)
        v[c] = (v[c] + v[d]) & MASK
        v[b] = rotate_right(v[b] ^ v[c], 12)
        v[a] = (v[a] + v[b] + y) & MASK
        v[d] = rotate_right(v[d] ^ v[a], 8)
        v[c] = (v[c] + v[d]) & MASK
        v[b] = rotate_right(v[b] ^ v[c], 7)

    for _ in range(7):
        for column in range(4):
            at = [column, column + 4, column + 8, column + 12]
            mix(*at, words[2 * column], words[2 * column + 1])
        for column in range(4):
            at = [column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12]
            mix(*at, words[8 + 2 * column], words[9 + 2 * column])
        words = [words[at] for at in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def blake3(data, key=IV, mode=0):
    def chunk(number, part, root):
        blocks = [part[at : at + 64] for at in range(0, len(part), 64)] or [b""]
        cv = key
        for at, block in enumerate(blocks):
            flags = mode | (CHUNK_START if at == 0 else 0)
            if at == len(blocks) - 1:
                flags |= CHUNK_END | root
            cv = compress(cv, block, number, len(block), flags)
        return cv

    def tree(first, part, root):
        if len(part) <= 1024:
            return chunk(first, part, root)
        left = 1024
        while left * 2 < len(part):
            left *= 2
        block = tree(first, part[:left], 0) + tree(first + left // 1024, part[left:], 0)
        return compress(key, struct.pack("<16I", *block), 0, 64, mode | PARENT | root)

    return struct.pack("<8I", *tree(0, data, ROOT))


def words(key):
    return list(struct.unpack("<8I", key))


def derive_key(context, material):
    return blake3(material, words(blake3(context, IV, CONTEXT)), MATERIAL)


def keyed_hash(key, data):
    return blake3(data, words(key), KEYED)


def chacha(key, nonce, counter, rounds):
    """One block of the keystream."""
    start = list(struct.unpack("<4I", b"expand 32-byte k")) + words(key)
    start += [counter] + list(struct.unpack("<3I", nonce))
    v = start[:]

    def quarter(a, b, c, d):
        for x, y, z, by in (a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7):
            v[x] = (v[x] + v[y]) & MASK
            v[z] = rotate_right(v[z] ^ v[x], 32 - by)

    for _ in range(rounds // 2):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for column in range(4):
            quarter(column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12)
    return struct.pack("<16I", *((a + b) & MASK for a, b in zip(v, start)))


def seal(mesh_secret, unit):
    secret = derive_key(b"hearsay 2026-11-22 keys of sealed units", mesh_secret)
    key = keyed_hash(secret, unit)
    blocks = (len(unit) + 63) // 64
    stream = b"".join(chacha(key, bytes(12), number, 12) for number in range(blocks))
    return key, bytes(a ^ b for a, b in zip(unit, stream))


def check():
    # RFC 8439, section 2.3.2.
    block = chacha(bytes(range(32)), bytes.fromhex("000000090000004a00000000"), 1, 20)
    assert block.hex().startswith("10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e")
    # draft-strombergson-chacha-test-vectors-01, TC1: 256-bit key, 12 rounds.
    block = chacha(bytes(32), bytes(12), 0, 12)
    assert block.hex().startswith("9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f")
    # BLAKE3's test_vectors.json: inputs are 0, 1, …, 250, 0, 1, …
    data = bytes(at % 251 for at in range(4096))
    assert blake3(b"").hex().startswith("af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262")
    assert blake3(data[:1025]).hex().startswith("d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444")
    key = b"whats the Elvish word for friend"
    assert keyed_hash(key, b"").hex().startswith("92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26")
    context = b"BLAKE3 2019-12-27 16:29:52 test vectors context"
    assert derive_key(context, b"").hex().startswith("2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d")


if __name__ == "__main__":
    check()
    for unit in [b"a", b"Nobody else may read this.", bytes(at % 251 for at in range(5000))]:
        key, sealed = seal(bytes(range(32)), unit)
        print(len(unit), key.hex(), blake3(sealed).hex(), sealed[:32].hex())
