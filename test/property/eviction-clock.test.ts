/**
 * The start of a toleration time: through the API, the store and the controllers. A user's NoExecute taint has the time
 * of the write that adds it. A binding has the time of the commit that made it. Neither depends on what a client or a
 * machine wrote, nor on the order of stream records and ticks.
 */
import { describe, expect, it } from 'vitest';
import type { KubeNode, Taint } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import type { ItemStore, TransactWrite } from '../../shared/store/item-store.ts';
import { nodePodsPartition } from '../../shared/store/layout.ts';
import { APPLY, JSON_PATCH, MERGE, NODES, node, pod, podsIn, STRATEGIC } from '../support/api-in-memory.ts';
import { randomFrom } from '../support/seeded.ts';
import { type ServedFleet, servedFleet, staggered } from '../support/served-fleet.ts';

const DAY_SECONDS = 86_400;
const TOLERATED_SECONDS = 600;
const PERIOD_SECONDS = 5;
const PODS = podsIn('default');
const tolerating = (key: string, tolerationSeconds?: number) => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

/** Two healthy nodes, pods on n1 that are one day old, and controllers without pending work. */
async function dayOldPods(): Promise<ServedFleet & { readonly beats: () => Promise<void> }> {
  const served = servedFleet(['n1', 'n2']);
  const { fleet, send } = served;
  for (const name of ['n1', 'n2']) {
    await fleet.register(name, { zone: 'a' });
    await fleet.post(name);
  }
  for (const [name, tolerations] of [
    ['old', [tolerating('foo', TOLERATED_SECONDS)]],
    ['other', [tolerating('foo')]],
  ] as const) {
    await send('POST', PODS, { body: pod(name, { spec: { tolerations } }) });
    await send('POST', `${PODS}/${name}/binding`, { body: bindingTo('n1', name) });
  }
  await fleet.streams();
  const beats = () => fleet.beat('n1', 'n2');
  await fleet.run(DAY_SECONDS, DAY_SECONDS + 60, beats);
  return { ...served, beats };
}

const bindingTo = (nodeName: string, name: string) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name },
  target: { kind: 'Node', name: nodeName },
});

const deletedAt = async ({ fleet }: ServedFleet, name: string) => (await fleet.pod(name))?.metadata.deletionTimestamp;
const taintOf = async ({ fleet }: ServedFleet): Promise<Taint | undefined> =>
  (await fleet.node('n1'))?.spec?.taints?.find(({ key }) => key === 'foo');

/** Due time of the pod's timer; undefined without one. Seconds from the start. */
async function timerSeconds({ fleet }: ServedFleet, name: string): Promise<number | undefined> {
  const timer = (await fleet.timers('n1')).find((each) => each.name === name);
  return timer === undefined ? undefined : fleet.seconds() + (timer.atMs - fleet.nowMs()) / 1_000;
}

const NODE = `${NODES}/n1`;
const TAINT = { key: 'foo', value: 'bar', effect: 'NoExecute' };
const LONG_AGO = '2001-02-03T04:05:06Z';
const FAR_AHEAD = '2099-02-03T04:05:06Z';

const WAYS: readonly (readonly [string, (served: ServedFleet, taint: object) => Promise<unknown>])[] = [
  [
    'strategic merge patch, as kubectl taint',
    ({ send }, taint) => send('PATCH', NODE, { contentType: STRATEGIC, body: { spec: { taints: [taint] } } }),
  ],
  [
    'merge patch',
    ({ send }, taint) => send('PATCH', NODE, { contentType: MERGE, body: { spec: { taints: [taint] } } }),
  ],
  [
    'JSON patch',
    ({ send }, taint) =>
      send('PATCH', NODE, {
        contentType: JSON_PATCH,
        body: [{ op: 'add', path: '/spec/taints', value: [taint] }],
      }),
  ],
  [
    'PUT',
    async ({ send, fleet }, taint) => {
      const stored = (await fleet.node('n1')) as KubeNode;
      await send('PUT', NODE, { body: { ...stored, spec: { ...stored.spec, taints: [taint as Taint] } } });
    },
  ],
  [
    'apply',
    ({ send }, taint) =>
      send('PATCH', `${NODE}?fieldManager=tester&force=true`, {
        contentType: APPLY,
        body: node('n1', { spec: { taints: [taint] } }),
      }),
  ],
];

describe.each(WAYS)('a NoExecute taint added by %s', (_way, add) => {
  it.each([
    ['no time', undefined],
    ['a time long ago', LONG_AGO],
    ['a time far ahead', FAR_AHEAD],
  ])('with %s is stored with the time of the write', async (_what, timeAdded) => {
    const served = await dayOldPods();
    served.fleet.at(DAY_SECONDS + 61.5);
    await add(served, { ...TAINT, ...(timeAdded === undefined ? {} : { timeAdded }) });
    const atMs = parseTimeMs((await taintOf(served))?.timeAdded);
    expect(atMs).toBe(served.fleet.nowMs() + 500);
    // Written again, with another time or without one: the same taint.
    served.fleet.at(DAY_SECONDS + 90);
    await add(served, { ...TAINT, timeAdded: LONG_AGO });
    await add(served, TAINT);
    expect(parseTimeMs((await taintOf(served))?.timeAdded)).toBe(atMs);
    await add(served, { ...TAINT, value: 'other' });
    expect(parseTimeMs((await taintOf(served))?.timeAdded)).toBe(served.fleet.nowMs());
  });
});

describe('a Node that registers with a NoExecute taint', () => {
  it.each([LONG_AGO, FAR_AHEAD])('stores the time of its registration and not %s', async (timeAdded) => {
    const served = servedFleet(['n1']);
    served.fleet.at(100);
    const { code } = await served.sendAs('n1', 'POST', NODES, {
      body: node('n1', { spec: { taints: [{ ...TAINT, timeAdded }] } }),
    });
    expect(code).toBe(201);
    expect(parseTimeMs((await taintOf(served))?.timeAdded)).toBe(served.fleet.nowMs());
  });

  it('may write it again with another time, without effect', async () => {
    const served = servedFleet(['n1']);
    await served.sendAs('n1', 'POST', NODES, { body: node('n1', { spec: { taints: [TAINT] } }) });
    const before = (await served.fleet.node('n1')) as KubeNode;
    const taints = before.spec?.taints?.map((taint) => ({ ...taint, timeAdded: LONG_AGO }));
    const { code } = await served.sendAs('n1', 'PATCH', NODE, { contentType: MERGE, body: { spec: { taints } } });
    expect(code).toBe(200);
    expect((await served.fleet.node('n1'))?.spec?.taints).toEqual(
      before.spec?.taints?.map((taint) => (taint.effect === 'NoExecute' ? taint : { ...taint, timeAdded: LONG_AGO })),
    );
  });
});

describe('a pod that is a day old and tolerates the taint for 600 s', () => {
  const [, add] = WAYS[0]!;
  /** Stream records since then, of objects in partitions with this prefix. */
  const recordsSince = ({ fleet }: ServedFleet, sequence: number, prefix: string) =>
    fleet.tables.changes('objects', sequence).filter(({ key }) => key.pk.startsWith(prefix));
  const lastSequence = ({ fleet }: ServedFleet) => fleet.tables.changes('objects').at(-1)?.sequence ?? 0;

  it.each(Array.from({ length: 20 }, (_, seed) => seed))(
    'keeps its 600 s when two invocations meet the records at once (stagger %i)',
    async (seed) => {
      const served = await dayOldPods();
      const { fleet } = served;
      const before = lastSequence(served);
      await add(served, TAINT);
      await fleet.changePod('other', (each) => ({ ...each, spec: { ...each.spec, tolerations: [] } }));
      // From a much slower one to one like both.
      const turnsMax = [4, 16, 64, 256][seed % 4] as number;
      const invoke = (part: number, prefix: string) =>
        fleet
          .makeControllers(staggered(fleet.tables, randomFrom(seed * 2 + part), part === 0 ? turnsMax : 16))
          .onObjectRecords(recordsSince(served, before, prefix));
      await Promise.all([invoke(0, 'o#nodes#'), invoke(1, 'o#pods#')]);
      expect(await deletedAt(served, 'old')).toBeUndefined();
      await fleet.streams();
      expect(await timerSeconds(served, 'old')).toBe(DAY_SECONDS + 60 + TOLERATED_SECONDS);
    },
  );

  it('keeps them when the record of another pod is processed first', async () => {
    const served = await dayOldPods();
    const { fleet } = served;
    const before = lastSequence(served);
    await add(served, TAINT);
    await fleet.changePod('other', (each) => ({ ...each, spec: { ...each.spec, tolerations: [] } }));
    await fleet.controllers.onObjectRecords(recordsSince(served, before, 'o#pods#'));
    expect(await deletedAt(served, 'other')).toBeDefined();
    expect(await deletedAt(served, 'old')).toBeUndefined();
    // A change of one pod decides nothing about another one.
    expect(await timerSeconds(served, 'old')).toBeUndefined();
    await fleet.controllers.onObjectRecords(recordsSince(served, before, 'o#nodes#'));
    expect(await timerSeconds(served, 'old')).toBe(DAY_SECONDS + 60 + TOLERATED_SECONDS);
  });

  it('keeps them when a tick for another timer runs first, and is deleted at most two periods later', async () => {
    const served = await dayOldPods();
    const { fleet, send, beats } = served;
    // A pod with a timer: it tolerates another taint of the node for a moment.
    await send('POST', PODS, {
      body: pod('brief', { spec: { tolerations: [tolerating('quick', 3), tolerating('foo')] } }),
    });
    await send('POST', `${PODS}/brief/binding`, { body: bindingTo('n1', 'brief') });
    for (const [name, tolerated] of [
      ['old', tolerating('foo', TOLERATED_SECONDS)],
      ['other', tolerating('foo')],
    ] as const) {
      const tolerations = [tolerated, tolerating('quick')];
      await fleet.changePod(name, (each) => ({ ...each, spec: { ...each.spec, tolerations } }));
    }
    const quick = { key: 'quick', effect: 'NoExecute' };
    await send('PATCH', NODE, { contentType: MERGE, body: { spec: { taints: [quick] } } });
    await fleet.streams();
    expect(await timerSeconds(served, 'brief')).toBe(DAY_SECONDS + 63);
    fleet.at(DAY_SECONDS + 65);
    await beats();
    const taints = [quick, TAINT];
    await send('PATCH', NODE, { contentType: MERGE, body: { spec: { taints } } });
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await deletedAt(served, 'brief')).toBeDefined();
    expect(await deletedAt(served, 'old')).toBeUndefined();
    const due = DAY_SECONDS + 65 + TOLERATED_SECONDS;
    await fleet.run(DAY_SECONDS + 70, due - PERIOD_SECONDS, beats);
    expect(await deletedAt(served, 'old')).toBeUndefined();
    await fleet.run(due, due + 2 * PERIOD_SECONDS, beats);
    expect(await deletedAt(served, 'old')).toBeDefined();
  });

  it('is not evicted by a taint that an older version stored without its time, while the stamp cannot be written', async () => {
    const served = await dayOldPods();
    const { fleet, beats } = served;
    const isOfNode = (write: TransactWrite) => write.key.pk.startsWith('o#nodes#') && write.kind === 'put';
    const busy: ItemStore = {
      ...fleet.tables,
      transact: async (writes) => (writes.some(isOfNode) ? { kind: 'contended' } : fleet.tables.transact(writes)),
    };
    const before = lastSequence(served);
    await fleet.changeNode('n1', (each) => ({
      ...each,
      spec: { ...each.spec, taints: [{ key: 'foo', value: 'bar', effect: 'NoExecute' }] },
    }));
    const controllers = fleet.makeControllers(busy);
    const { postponed } = await controllers.onObjectRecords(recordsSince(served, before, 'o#'));
    expect(postponed).not.toEqual([]);
    expect(await deletedAt(served, 'old')).toBeUndefined();
    for (let seconds = DAY_SECONDS + 65; seconds <= DAY_SECONDS + 65 + 2 * TOLERATED_SECONDS; seconds += 5) {
      fleet.at(seconds);
      await beats();
      await controllers.tickNodeMonitor(fleet.slot());
      await controllers.tickEvictor(fleet.slot());
    }
    expect(await deletedAt(served, 'old')).toBeUndefined();
    expect((await taintOf(served))?.timeAdded).toBeUndefined();
    // The record is delivered again and can be written: the taint counts from here.
    const stampedAt = fleet.seconds();
    await fleet.streams();
    expect(parseTimeMs((await taintOf(served))?.timeAdded)).toBe(fleet.nowMs());
    await fleet.run(stampedAt + 5, stampedAt + TOLERATED_SECONDS - 5, beats);
    expect(await deletedAt(served, 'old')).toBeUndefined();
    await fleet.run(stampedAt + TOLERATED_SECONDS, stampedAt + TOLERATED_SECONDS + 10, beats);
    expect(await deletedAt(served, 'old')).toBeDefined();
  });
});

describe('a binding', () => {
  const BIND_SECONDS = 300;
  const BINDINGS: readonly (readonly [string, (served: ServedFleet) => Promise<unknown>])[] = [
    ['by the binding subresource', ({ send }) => send('POST', `${PODS}/p/binding`, { body: bindingTo('n1', 'p') })],
    [
      'by a creation that names the node',
      async ({ send }) => {
        await send('DELETE', `${PODS}/p`);
        await send('POST', PODS, {
          body: pod('p', { spec: { nodeName: 'n1', tolerations: [tolerating('foo', 300)] } }),
        });
      },
    ],
    [
      'of a mirror pod',
      async ({ send, sendAs, fleet }) => {
        await send('DELETE', `${PODS}/p`);
        const { uid } = ((await fleet.node('n1')) as KubeNode).metadata;
        const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid, controller: true };
        const metadata = { name: 'p', annotations: { 'kubernetes.io/config.mirror': 'x' }, ownerReferences: [owner] };
        const mirror = pod('p', {
          metadata,
          spec: { nodeName: 'n1', tolerations: [tolerating('foo', 300)] },
        } as object);
        const { code, text } = await sendAs('n1', 'POST', PODS, { body: mirror });
        expect(code, text).toBe(201);
      },
    ],
  ];

  /** n1 has the taint foo from the start. An unbound pod tolerates it for 300 s. */
  async function taintedNode() {
    const served = servedFleet(['n1']);
    const { fleet, send } = served;
    await fleet.register('n1', { zone: 'a' });
    await fleet.register('n2', { zone: 'a' });
    await fleet.post('n1');
    await fleet.post('n2');
    await send('PATCH', NODE, { contentType: MERGE, body: { spec: { taints: [TAINT] } } });
    await send('POST', PODS, { body: pod('p', { spec: { tolerations: [tolerating('foo', 300)] } }) });
    const beats = () => fleet.beat('n1', 'n2');
    await fleet.run(0, BIND_SECONDS, beats);
    return { ...served, beats };
  }

  const scheduled = (lastTransitionTime: string) => ({
    status: { phase: 'Running', conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime }] },
  });

  describe.each(BINDINGS)('%s', (_way, bind) => {
    it.each([
      ['an hour ahead', '2026-01-01T01:05:00Z'],
      ['a year ahead', '2027-01-01T00:00:00Z'],
      ['years ago', LONG_AGO],
      ['never said', undefined],
    ])('counts from our commit on a machine with a clock that is %s', async (_what, said) => {
      const { fleet, sendAs, beats, ...served } = await taintedNode();
      await bind({ fleet, sendAs, ...served });
      await fleet.streams();
      const says = async () => {
        if (said === undefined) return;
        const answer = await sendAs('n1', 'PATCH', `${PODS}/p/status`, { contentType: MERGE, body: scheduled(said) });
        expect(answer.code, answer.text).toBe(200);
      };
      await says();
      const due = BIND_SECONDS + 300;
      await fleet.run(BIND_SECONDS + 5, due - 5, beats);
      expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeUndefined();
      await says();
      await fleet.run(due, due + 10, beats);
      expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeDefined();
    });
  });

  it('appears in no object, list or watch', async () => {
    const { fleet, send } = await taintedNode();
    await send('POST', `${PODS}/p/binding`, { body: bindingTo('n1', 'p') });
    const [{ pod: found, boundAtMs } = { pod: undefined, boundAtMs: 0 }] = await fleet.objects.listBound('n1');
    expect(boundAtMs).toBe(fleet.nowMs());
    for (const shown of [
      found,
      await send('GET', `${PODS}/p`),
      ((await send('GET', `${PODS}?fieldSelector=spec.nodeName=n1`)) as { items?: object[] }).items?.[0],
    ]) {
      expect(
        Object.keys(shown ?? {})
          .filter((field) => !['apiVersion', 'kind'].includes(field))
          .sort(),
      ).toEqual(['metadata', 'spec', 'status']);
    }
    const logged = fleet.tables.changes('objects').filter(({ key }) => /^[ol]#pods#/.test(key.pk));
    expect(logged.length).toBeGreaterThan(0);
    for (const { newImage } of logged) expect(Object.keys(newImage ?? {})).not.toContain('b');
  });

  it('of an earlier pod of the same name does not count for a later one', async () => {
    const { fleet, send } = await taintedNode();
    await send('POST', `${PODS}/p/binding`, { body: bindingTo('n1', 'p') });
    const key = { table: 'objects', pk: nodePodsPartition('n1'), sk: 'default/p' } as const;
    await fleet.tables.write({ kind: 'put', key, item: { u: 'another', b: 1 } });
    expect((await fleet.objects.listBound('n1')).map(({ boundAtMs }) => boundAtMs)).toEqual([fleet.nowMs()]);
  });
});
