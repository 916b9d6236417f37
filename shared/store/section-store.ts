/**
 * Large texts of an object, beside its own item: an item holds 400 KB, a CustomResourceDefinition may have 1.5 MB.
 *
 * A section is a text with a key, stored under the hash of its content: compressed, cut into parts. A part never
 * changes, so a reader of any version of the object finds its texts, also one that reads the change log. A section that
 * the object no longer has gets an expiry after that of the log.
 *
 * Cost: per new section one write unit per KB of its compressed text, doubled by the transaction. A change that keeps a
 * section writes nothing of it. A read is one item per part.
 */
import { createHash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type ItemKey, type ItemStore, StoreFault, type TransactWrite } from './item-store.ts';
import {
  bytes,
  changeOf,
  LOG_RETENTION_SECONDS,
  number,
  present,
  readRow,
  sectionPartition,
  TTL_ATTRIBUTE,
} from './layout.ts';

/** Compressed bytes of one part: an item with its keys stays below 400 KB. */
const PART_BYTES_MAX = 350_000;
/** Bytes of one section's text: more than any definition has. */
const SECTION_BYTES_MAX = 16 * 1_024 * 1_024;
/** A section is kept this much longer than the change log, for a reader that is late. Seconds. */
const EXPIRY_MARGIN_SECONDS = 900;

/** What the object's own item has of a section. */
export interface Section {
  readonly key: string;
  readonly hash: string;
  /** Number of parts. */
  readonly parts: number;
}

export interface PackedSection extends Section {
  readonly bytes: Uint8Array;
}

const PART = {
  content: present(bytes('b')),
  expiresAtSeconds: number(TTL_ATTRIBUTE),
};

export function packSection(key: string, text: string): PackedSection {
  const packed = deflateRawSync(text);
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 32);
  return { key, hash, parts: Math.max(1, Math.ceil(packed.length / PART_BYTES_MAX)), bytes: packed };
}

const partKey = (owner: string, hash: string, part: number): ItemKey => ({
  table: 'objects',
  pk: sectionPartition(owner),
  sk: `${hash}-${String(part).padStart(2, '0')}`,
});

const partKeys = (owner: string, { hash, parts }: Section): ItemKey[] =>
  Array.from({ length: parts }, (_, part) => partKey(owner, hash, part));

/** The writes that belong to the transaction of the object. A section with the same hash before is not written. */
export function sectionWrites(
  owner: string,
  {
    next,
    previous,
    nowMs,
  }: { readonly next: readonly PackedSection[]; readonly previous: readonly Section[]; readonly nowMs: number },
): readonly TransactWrite[] {
  const known = new Set(previous.map(({ hash }) => hash));
  const kept = new Set(next.map(({ hash }) => hash));
  const expiresAtSeconds = Math.ceil(nowMs / 1_000) + LOG_RETENTION_SECONDS + EXPIRY_MARGIN_SECONDS;
  const written = uniqueByHash(next).filter(({ hash }) => !known.has(hash));
  const dropped = uniqueByHash(previous).filter(({ hash }) => !kept.has(hash));
  return [
    ...written.flatMap((section) =>
      partKeys(owner, section).map((key, part): TransactWrite => {
        const content = section.bytes.subarray(part * PART_BYTES_MAX, (part + 1) * PART_BYTES_MAX);
        return { kind: 'put', key, item: changeOf(PART, { content }).set };
      }),
    ),
    ...dropped.flatMap((section) =>
      partKeys(owner, section).map(
        (key): TransactWrite => ({ kind: 'update', key, set: changeOf(PART, { expiresAtSeconds }).set }),
      ),
    ),
  ];
}

const uniqueByHash = <T extends Section>(sections: readonly T[]): T[] => [
  ...new Map(sections.map((section) => [section.hash, section])).values(),
];

/** The texts by key. @throws StoreFault `rejected` for a part that is absent or damaged */
export async function readSections(
  items: Pick<ItemStore, 'getMany'>,
  owner: string,
  sections: readonly Section[],
): Promise<ReadonlyMap<string, string>> {
  const keys = sections.flatMap((section) => partKeys(owner, section));
  const found = await items.getMany(keys, { consistent: true });
  const contents = found.map((item) => {
    if (item === undefined) throw damaged('a part of an object is absent');
    return readRow(PART, item).content;
  });
  let at = 0;
  return new Map(
    sections.map(({ key, parts }) => {
      const own = contents.slice(at, at + parts);
      at += parts;
      return [key, inflated(Buffer.concat(own))];
    }),
  );
}

function inflated(packed: Uint8Array): string {
  try {
    return inflateRawSync(packed, { maxOutputLength: SECTION_BYTES_MAX }).toString();
  } catch (cause) {
    throw damaged('a part of an object is damaged', cause);
  }
}

const damaged = (message: string, cause?: unknown): StoreFault =>
  new StoreFault('rejected', message, { retryable: false, ...(cause === undefined ? {} : { cause }) });
