/**
 * Texts of items, compressed where that saves capacity units. A text of a Node of 3 KB is then 0.3 KB, so its item and
 * its entry in the change log are one unit each.
 *
 * A compressed text is a binary attribute: one byte for the format, then raw deflate with a preset dictionary. A text
 * that fits a unit as it is stays a string.
 *
 * Compression needs 30 µs for a Node of 3 KB, decompression 10 to 25 µs, most of it for the state of zlib. Texts of
 * objects that were compressed, and texts that were decompressed, are kept up to a limit: what was written is read by
 * those who react to it, and clients read the same objects again and again. 1 µs finds one.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { StoreFault } from './item-store.ts';
import { OBJECT_DICTIONARY_1 } from './object-dictionary.ts';

/** A text of an item as it is stored. */
export type StoredText = string | Uint8Array;

/** Raw deflate with OBJECT_DICTIONARY_1. */
const FORMAT_DEFLATE_1 = 1;
/**
 * A state of 80 KB instead of 270, which zlib would allocate and clear for each text. The window holds the dictionary,
 * and texts come out as short. A reader needs no larger one: its window is the largest.
 */
const DEFLATE_STATE = { windowBits: 14, memLevel: 5, chunkSize: 4_096 } as const;
const INFLATE_CHUNK_BYTES = 4_096;
/** UTF-16 units of a text that stays a string: with keys and other attributes its item is below 1 KB. */
const STRING_LENGTH_MAX = 700;
/** Bytes of a decompressed text: several times what an item can hold. */
const TEXT_BYTES_MAX = 4 * 1_024 * 1_024;

/** UTF-16 units of all texts that are kept: 2,000 Nodes. */
const KEPT_UNITS_MAX = 4_000_000;

const dictionary = new TextEncoder().encode(OBJECT_DICTIONARY_1);

export function packText(text: string): StoredText {
  if (text.length <= STRING_LENGTH_MAX) return text;
  const deflated = deflateRawSync(text, { ...DEFLATE_STATE, dictionary });
  const packed = new Uint8Array(1 + deflated.length);
  packed[0] = FORMAT_DEFLATE_1;
  packed.set(deflated, 1);
  return packed;
}

/** The same for a text of an object, which is kept. Other texts would displace objects, and are hardly ever read. */
export function packObjectText(text: string): StoredText {
  const packed = packText(text);
  // A text with a lone surrogate is not what is read back.
  if (typeof packed !== 'string' && text.isWellFormed()) keep(bytesKey(packed), text);
  return packed;
}

/** Texts by their bytes. A text is then never that of another version. */
const kept = new Map<string, string>();
let keptUnits = 0;

const bytesKey = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1');

function keep(key: string, text: string): void {
  const units = key.length + text.length;
  if (kept.has(key)) return;
  if (keptUnits + units > KEPT_UNITS_MAX) {
    kept.clear();
    keptUnits = 0;
  }
  if (units > KEPT_UNITS_MAX) return;
  kept.set(key, text);
  keptUnits += units;
}

/** @throws StoreFault `rejected` for bytes that this release cannot read */
export function unpackText(stored: StoredText): string {
  if (typeof stored === 'string') return stored;
  if (stored[0] !== FORMAT_DEFLATE_1) {
    throw new StoreFault('rejected', `a text has the format ${stored[0]}: a newer release wrote it`, {
      retryable: false,
    });
  }
  const key = bytesKey(stored);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const text = inflated(stored.subarray(1));
  keep(key, text);
  return text;
}

function inflated(deflated: Uint8Array): string {
  try {
    return inflateRawSync(deflated, {
      dictionary,
      chunkSize: INFLATE_CHUNK_BYTES,
      maxOutputLength: TEXT_BYTES_MAX,
    }).toString();
  } catch (cause) {
    throw new StoreFault('rejected', 'a compressed text is damaged', { retryable: false, cause });
  }
}
