/** What each write changes in the row of a node, attribute by attribute, and on which condition. */
import { describe, expect, it } from 'vitest';
import type { Item } from '../../store/item-store.ts';
import { healthKey } from '../../store/layout.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import type { NodeHealth } from './health.ts';
import {
  confirmStatus,
  describeNode,
  flapsChanged,
  markUnknown,
  type NodeDigest,
  podsChanged,
  podsMarked,
  readHealth,
  scanSegmentsFor,
  statusReceived,
} from './health-store.ts';

const T = Date.UTC(2026, 0, 1);
const NONE = { notReady: false, unreachable: false };
const DIGEST: NodeDigest = {
  uid: 'u1',
  zone: 'a',
  ready: 'True',
  excluded: false,
  suspect: false,
  noExecute: NONE,
  createdAtMs: T,
};

async function rowOf(before: Item | undefined, ...writes: ReturnType<typeof describeNode>[]) {
  const items = memoryItemStore();
  if (before !== undefined) await items.write({ kind: 'put', key: healthKey('n1'), item: before });
  const kinds: string[] = [];
  for (const write of writes) kinds.push((await items.write(write)).kind);
  const { pk: _pk, sk: _sk, ...row } = (await items.get(healthKey('n1'), { consistent: true })) ?? {};
  return { row, kinds, health: (await readHealth(items, ['n1'])).get('n1') };
}
const described = async (more: Partial<NodeDigest>, isNew: boolean, before: Item = {}) =>
  (await rowOf(before, describeNode('n1', { ...DIGEST, ...more }, { isNew }))).row;

/** A row with every attribute that a digest may change. */
const FULL: Item = {
  u: 'u0',
  b: 1,
  z: 'z',
  e: 1,
  s: 1,
  k: 3,
  P: 'p',
  C: 1,
  S: 1,
  l: 1,
  m: 1,
  w: 1,
  F: 'f',
  f: 1,
  g: 1,
};

describe('the digest of a Node', () => {
  it('of a new Node inherits nothing from a row of its name', async () => {
    expect(await described({}, true, FULL)).toEqual({ u: 'u1', b: T, z: 'a', y: expect.anything() });
  });

  it('of an existing Node keeps what a status post alone changes', async () => {
    const { C, S, l, F, f, g } = FULL;
    expect(await described({ ready: 'False' }, false, FULL)).toEqual({
      ...{ u: 'u1', b: T, z: 'a', y: expect.anything(), w: 1, C, S, l, F, f, g },
    });
  });

  it.each<[string, Partial<NodeDigest>, Item]>([
    ['its zone', { zone: 'b' }, { z: 'b' }],
    ['that it is excluded', { excluded: true }, { e: 1 }],
    ['that it is suspect', { suspect: true }, { s: 1 }],
    ['its profile', { profile: 'edge', profileChangedAtMs: T + 1_999 }, { P: 'edge', C: T / 1_000 + 1 }],
    ['a promise', { plannedUntilMs: T + 1 }, { S: T / 1_000 + 1 }],
    ['the end of a promise', { silenceEndedAtMs: T + 1 }, { S: -(T / 1_000 + 1) }],
    ['a promise before an end', { plannedUntilMs: T, silenceEndedAtMs: T }, { S: T / 1_000 }],
    ['a status post', { statusAtMs: T + 5 }, { l: T + 5 }],
  ])('has %s', async (_name, more, changed) => {
    const plain = await described({}, true);
    expect(await described(more, true)).toEqual({ ...plain, ...changed });
  });

  it('has no attribute for what it lacks', async () => {
    expect(await described({ zone: '', ready: undefined }, true)).toEqual({ u: 'u1', b: T });
  });

  it('removes mark, pods to mark and promise by the status of a live node', async () => {
    const marked: Item = { m: 1, w: 1, S: 9, l: 1 };
    const left = (more: Partial<NodeDigest>) =>
      described(more, false, marked).then((row) => ['m', 'w', 'S', 'l'].filter((each) => each in row).join(' '));
    expect(await left({ ready: 'True', statusAtMs: T })).toBe('l');
    expect(await left({ ready: 'True' })).toBe('S l');
    expect(await left({ ready: 'False', statusAtMs: T })).toBe('w l');
    expect(await left({ ready: 'Unknown' })).toBe('m w S l');
    expect(await left({ ready: 'Unknown', statusAtMs: T })).toBe('w l');
  });

  it('is read as it was written', async () => {
    for (const noExecute of [
      NONE,
      { notReady: true, unreachable: false },
      { notReady: false, unreachable: true },
      { notReady: true, unreachable: true },
    ]) {
      const digest = { ...DIGEST, noExecute, excluded: true, suspect: true, profile: 'edge', plannedUntilMs: T };
      const { health, row } = await rowOf({ u: 'u1' }, describeNode('n1', digest, { isNew: true }));
      expect(health).toMatchObject({ nodeName: 'n1', ...digest });
      expect('k' in row).toBe(noExecute.notReady || noExecute.unreachable);
    }
  });
});

async function seenNode(more: Item = {}): Promise<{ row: Item; seen: NodeHealth }> {
  const { row, health } = await rowOf(
    { r: T + 10, l: T + 20, ...more },
    {
      ...describeNode('n1', DIGEST, { isNew: false }),
    },
  );
  return { row, seen: health! };
}

describe('a mark', () => {
  const mark = { nowMs: T + 99, noExecute: { notReady: false, unreachable: true }, podsToMark: true };

  it('stores Unknown, suspect, the time, the taints and that pods are to be marked', async () => {
    const { row, seen } = await seenNode();
    const { row: marked, health } = await rowOf(row, markUnknown(seen, mark));
    expect(marked).toMatchObject({ s: 1, m: T + 99, w: 1, k: expect.any(Number) });
    expect(health).toMatchObject({ ready: 'Unknown', suspect: true, noExecute: mark.noExecute });
    const { row: bare } = await rowOf(
      { ...row, k: 3 },
      markUnknown(seen, { ...mark, noExecute: NONE, podsToMark: false }),
    );
    expect(bare).not.toHaveProperty('k');
    expect(bare).not.toHaveProperty('w');
    expect(bare).not.toHaveProperty('F');
    const { row: flapped } = await rowOf(row, markUnknown(seen, { ...mark, flaps: new Uint8Array([1]) }));
    expect(flapped['F']).toEqual(new Uint8Array([1]));
  });

  it.each<[string, Item]>([
    ['a beat', { r: T + 11 }],
    ['a status post', { l: T + 21 }],
    ['another Node', { u: 'u2' }],
    ['a promise', { S: 5 }],
    ['a profile', { P: 'edge' }],
    ['a change of the profile', { C: 5 }],
    ['another mark', { F: new Uint8Array([1]) }],
  ])('is refused after %s', async (_name, change) => {
    const { row, seen } = await seenNode();
    expect((await rowOf({ ...row, ...change }, markUnknown(seen, mark))).kinds).toEqual(['refused']);
    expect((await rowOf(row, markUnknown(seen, mark))).kinds).toEqual(['written']);
  });

  it('of a node without a beat is refused after its first, and not because of one of an earlier Node', async () => {
    const { row, seen } = await seenNode();
    const { r: _r, ...never } = row;
    const { renewedAtMs: _renewed, ...unbeaten } = seen;
    const kinds = async (r?: number) =>
      (await rowOf(r === undefined ? never : { ...never, r }, markUnknown(unbeaten as NodeHealth, mark))).kinds[0];
    expect([await kinds(), await kinds(T - 1), await kinds(T), await kinds(T + 1)]).toEqual([
      'written',
      'written',
      'refused',
      'refused',
    ]);
  });
});

describe('the small writes', () => {
  it('a post that confirms stores its time and its range, for a node that is Ready and not marked', async () => {
    const { row } = await seenNode();
    const confirm = (uid: string) =>
      confirmStatus('n1', { uid, nowMs: T + 50, times: { fromSeconds: 3, toSeconds: 4 } });
    expect((await rowOf(row, confirm('u1'))).row).toEqual({ ...row, l: T + 50, f: 3, g: 4 });
    expect((await rowOf(row, confirm('u2'))).kinds).toEqual(['refused']);
    for (const change of [{ y: 'x' }, { s: 1 }, { m: 1 }])
      expect((await rowOf({ ...row, ...change }, confirm('u1'))).kinds).toEqual(['refused']);
  });

  it('an equal post stores its time, unless the node is marked', async () => {
    const { row } = await seenNode();
    const post = (uid: string) => statusReceived('n1', { uid, nowMs: T + 50 });
    expect((await rowOf({ ...row, s: 1 }, post('u1'))).row).toEqual({ ...row, s: 1, l: T + 50 });
    expect((await rowOf(row, post('u2'))).kinds).toEqual(['refused']);
    expect((await rowOf({ ...row, m: 1 }, post('u1'))).kinds).toEqual(['refused']);
  });

  it('pods that are marked are recorded once, for the same Node', async () => {
    const { row } = await seenNode({ w: 1 });
    const waiting = { ...row, w: 1 };
    expect((await rowOf(waiting, podsMarked('n1', 'u1'), podsMarked('n1', 'u1'))).kinds).toEqual([
      'written',
      'refused',
    ]);
    expect((await rowOf(waiting, podsMarked('n1', 'u2'))).row['w']).toBe(1);
  });

  it('flaps are stored and removed while no other mark came', async () => {
    const { row, seen } = await seenNode();
    const flaps = new Uint8Array([7]);
    const stored = await rowOf(row, flapsChanged(seen, flaps));
    expect(stored.row['F']).toEqual(flaps);
    expect((await rowOf(stored.row, flapsChanged(stored.health!, undefined))).row).not.toHaveProperty('F');
    expect((await rowOf(stored.row, flapsChanged(seen, undefined))).kinds).toEqual(['refused']);
    expect((await rowOf({ ...row, u: 'u2' }, flapsChanged(seen, flaps))).kinds).toEqual(['refused']);
  });

  it('a change of pods is counted, and makes no row', async () => {
    const { row } = await seenNode();
    expect((await rowOf(row, podsChanged('n1'), podsChanged('n1'))).row['p']).toBe(2);
    expect((await rowOf(undefined, podsChanged('n1'))).kinds).toEqual(['refused']);
  });
});

it('a scan has one segment per 2,000 rows, and all segments for an unknown number', () => {
  const all = scanSegmentsFor(undefined);
  expect([scanSegmentsFor(0), scanSegmentsFor(1)]).toEqual([1, 1]);
  expect(scanSegmentsFor(1_000_000)).toBe(all);
  expect([2_000, 2_001, 4_001].map(scanSegmentsFor)).toEqual([1, 2, 3]);
});
