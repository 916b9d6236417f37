/**
 * Status posts in which only heartbeat times move: what they cost, what clients see, and that nothing acknowledged is
 * lost.
 */
import { beforeEach, expect, it } from 'vitest';
import { markUnknown, scanHealth } from '../../shared/fleet/nodes/health-store.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import { type ApiInMemory, apiInMemory, MERGE, NODES, node, STRATEGIC } from '../support/api-in-memory.ts';
import { describeOnStores } from './stores.ts';

const START_MS = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
const WRITERS = 12;
const TYPES = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];

const timeAt = (minute: number): string => new Date(START_MS + minute * MINUTE_MS).toISOString().replace('.000', '');
const conditionsAt = (minute: number, ready = 'True') =>
  TYPES.map((type) => ({
    type,
    status: type === 'Ready' ? ready : 'False',
    reason: 'KubeletSaysSo',
    message: 'as a kubelet says it, in so many words',
    lastHeartbeatTime: timeAt(minute),
    lastTransitionTime: timeAt(0),
  }));

let count = 0;

describeOnStores('a status post', ({ items, consumed }) => {
  let api: ApiInMemory;
  let name: string;
  let path: string;
  beforeEach(async () => {
    api = apiInMemory({ items: items() });
    count += 1;
    name = `posts-${count}`;
    path = `${NODES}/${name}`;
    await api.send('POST', NODES, { body: node(name) });
    await post(0);
    // What object-stream does for a node that is Ready.
    await api.send('PATCH', path, { body: { spec: { taints: null } }, contentType: MERGE });
  });

  const post = (minute: number, more: object = {}, ready = 'True') =>
    api.send('PATCH', `${path}/status`, {
      body: { ...more, status: { conditions: conditionsAt(minute, ready) } },
      contentType: STRATEGIC,
    });
  const read = async () => (await api.send('GET', path)).body;
  const timesOf = (body: { status: { conditions: { lastHeartbeatTime: string }[] } }) => [
    ...new Set(body.status.conditions.map(({ lastHeartbeatTime }) => lastHeartbeatTime)),
  ];
  const rowOf = async () =>
    (await scanHealth(items(), { consistent: true })).find(({ nodeName }) => nodeName === name)!;

  it('costs one write unit when only times changed, and keeps the version', async () => {
    const before = await read();
    consumed();
    const answer = await post(5);
    const writes = consumed().filter(({ writeUnits }) => writeUnits > 0);
    expect(writes).toEqual([{ table: 'health', operation: 'UpdateItem', readUnits: 0, writeUnits: 1 }]);
    expect(answer.code).toBe(200);
    expect(timesOf(answer.body)).toEqual([timeAt(5)]);
    expect(answer.body.metadata).toEqual(before.metadata);
    expect(await read()).toEqual(answer.body);
    expect((await api.send('GET', NODES)).body.items).toContainEqual(
      expect.objectContaining({ metadata: answer.body.metadata, status: answer.body.status }),
    );
  });

  it('is a sign of life, received now (D1)', async () => {
    api.advance(5 * MINUTE_MS);
    await post(5);
    expect((await rowOf()).statusAtMs).toBe(api.nowMs());
  });

  it('reaches no watch when only times changed, and all when more did', async () => {
    const log = changeLog({ items: items(), clock: { nowMs: api.nowMs }, shardsOf });
    const after = Number((await read()).metadata.resourceVersion);
    const told = async () => {
      const outcome = await log.readChanges({ resource: 'nodes', after, limit: 100, eager: true });
      if (outcome.kind !== 'changes') throw new Error(outcome.kind);
      const own = outcome.changes.filter(({ ref }) => ref.name === name);
      return own.map(({ object }) => timesOf(object as never));
    };
    await post(5);
    expect(await told()).toEqual([]);
    await post(10, {}, 'False');
    expect(await told()).toEqual([[timeAt(10)]]);
  });

  it('is written in full when it names a version: of several writers with one version exactly one wins (L8)', async () => {
    const { metadata } = await read();
    const { resourceVersion } = metadata;
    const answers = await Promise.all(
      Array.from({ length: WRITERS }, (_, writer) => post(5 + writer, { metadata: { resourceVersion } })),
    );
    expect(answers.filter(({ code }) => code === 200)).toHaveLength(1);
    expect(answers.filter(({ code }) => code === 409)).toHaveLength(WRITERS - 1);
  });

  it('is written whole once a day', async () => {
    await post(5);
    const before = (await read()).metadata.resourceVersion;
    const answer = await post(DAY_MINUTES);
    expect(Number(answer.body.metadata.resourceVersion)).toBeGreaterThan(Number(before));
    expect(timesOf(await read())).toEqual([timeAt(DAY_MINUTES)]);
  });

  it('ends a mark that came between two posts', async () => {
    await post(5);
    const seen = await rowOf();
    const mark = { nowMs: api.nowMs(), noExecute: seen.noExecute, podsToMark: false };
    expect((await items().write(markUnknown(seen, mark))).kind).toBe('written');
    const answer = await post(10);
    expect(timesOf(answer.body)).toEqual([timeAt(10)]);
    expect(await rowOf()).toMatchObject({ ready: 'True', suspect: false });
    expect(await rowOf()).not.toHaveProperty('markedAtMs');
  });

  it('leaves nothing behind for a Node made anew under its name (D2)', async () => {
    await post(5);
    await api.send('DELETE', path);
    await api.send('POST', NODES, { body: node(name) });
    await post(0);
    expect(timesOf(await read())).toEqual([timeAt(0)]);
  });

  it('loses nothing acknowledged where it meets other writers (L8)', async () => {
    const writers = Array.from({ length: WRITERS }, (_, writer) => writer);
    const answers = await Promise.all(
      writers.flatMap((writer) => [
        api.send('PATCH', path, { body: { metadata: { labels: { [`w${writer}`]: 'x' } } }, contentType: MERGE }),
        post(5),
      ]),
    );
    expect(answers.every(({ code }) => code === 200)).toBe(true);
    const body = await read();
    expect(Object.keys(body.metadata.labels).sort()).toEqual(writers.map((writer) => `w${writer}`).sort());
    expect(timesOf(body)).toEqual([timeAt(5)]);
    expect(api.faults).toEqual([]);
  });

  it('is not undone by a write that was read before it', async () => {
    await post(5);
    const stale = await read();
    await post(10);
    const replaced = await api.send('PUT', path, { body: { ...stale, spec: { ...stale.spec, unschedulable: true } } });
    expect(replaced.code).toBe(200);
    expect(timesOf(await read())).toEqual([timeAt(10)]);
  });
});
