import { describe, expect, it } from 'vitest';
import { SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubeNode, KubePod, KubeSitePolicy } from '../../../shared/kinds/types.ts';
import type { ConditionStatus } from '../../../shared/kubernetes/kubernetes.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { SILENT_MS } from './site-permits.ts';
import { openSiteRescheduling, type SiteRescheduling, UNKNOWN_RELEASES_MAX } from './site-rescheduling.ts';

const podOn = (nodeName: string, uid: string, hub: string): KubePod => ({
  metadata: {
    ...{ namespace: 'plant', name: uid, uid },
    annotations: { [SITE_HUB]: hub, 'nodekeeper.dev/offline-stop-after': '10m' },
  },
  spec: { nodeName },
});

const EVERYTHING = ['own', 'other', 'of-another-hub', 'gone'];

interface World {
  readonly pods: readonly KubePod[];
  readonly nodes?: readonly KubeNode[];
  readonly policies?: readonly KubeSitePolicy[];
  readonly monotonicMs: () => number;
  readonly switchOff?: (nodeName: string) => Promise<boolean>;
  /** Between the read of the pods and its answer. */
  readonly whileRead?: () => Promise<void>;
}

function openSite({ pods, nodes = [], policies = [], whileRead, ...more }: World) {
  const kept: Record<string, readonly unknown[]> = { pods, nodes, sitepolicies: policies };
  let uids = 0;
  return openSiteRescheduling({
    hubName: 'hub',
    items: memoryItemStore(),
    objects: {
      list: async <T>({ resource }: { readonly resource: string }) => {
        const objects = [...kept[resource]!] as readonly T[];
        if (resource === 'pods') await whileRead?.();
        return { objects };
      },
      listByNode: async <T>(name: string) =>
        pods.filter(({ spec }) => spec?.nodeName === name) as unknown as readonly T[],
    },
    replica: { holds: () => true },
    upstream: { send: () => Promise.reject(new Error('no link')) },
    ...more,
    nowMs: () => 0,
    random: {
      uuid: () => {
        uids += 1;
        return `${uids}1111111-2222-4333-8444-555555555555`;
      },
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
}

it('releases pods of the machine that asks, those that no longer exist, and no others', async () => {
  let monotonicMs = 1;
  const pods = [podOn('m1', 'own', 'hub'), podOn('m2', 'other', 'hub'), podOn('m1', 'of-another-hub', 'hub-2')];
  const site = await openSite({ pods, monotonicMs: () => monotonicMs });
  site.onRead();
  // Before the first read over a new file nothing is released.
  expect((await site.permit('m1', { released: ['own'] })).released).toEqual([]);
  pods.length = 0;
  await site.look();
  pods.push(podOn('m1', 'own', 'hub'), podOn('m2', 'other', 'hub'), podOn('m1', 'of-another-hub', 'hub-2'));
  expect((await site.permit('m1', { released: EVERYTHING })).released).toEqual(['own', 'gone']);
  expect((await site.permit('m2', {})).permitted).toEqual(['other']);

  const releasedOf = async (nodeName: string, uids: readonly string[]) =>
    (await site.permit(nodeName, { released: uids })).released.length;
  // Each machine has one such request per second, and its share of what the hub keeps.
  expect(await releasedOf('m1', ['gone-too'])).toBe(0);
  expect(await releasedOf('m2', ['gone-too'])).toBe(1);
  monotonicMs += 1_000;
  const many = Array.from({ length: UNKNOWN_RELEASES_MAX }, (_, index) => `gone-${index}`);
  expect(await releasedOf('m1', many)).toBe(0);
  expect(await releasedOf('m1', many.slice(5))).toBe(UNKNOWN_RELEASES_MAX - 5);
  monotonicMs += 1_000;
  // The copy is read anew: what it does not have is forgotten.
  await site.look();
  expect(await releasedOf('m1', many)).toBe(UNKNOWN_RELEASES_MAX);
});

it('counts the release of a pod that it does not know yet for a pod of that machine alone', async () => {
  const pods: KubePod[] = [];
  const site = await openSite({ pods, monotonicMs: () => 1 });
  site.onRead();
  await site.look();
  for (const nodeName of ['m1', 'm2']) {
    expect((await site.permit(nodeName, { released: ['late'] })).released).toEqual(['late']);
  }
  await site.permit('m3', { released: ['new'] });
  pods.push(podOn('m2', 'late', 'hub'), podOn('m2', 'new', 'hub'));
  await site.look();
  expect((await site.permit('m2', {})).permitted).toEqual(['new']);
});

it('forgets nothing about a pod that was released while a look read the pods before it', async () => {
  const pods: KubePod[] = [];
  let whileRead = async (): Promise<void> => {};
  const site = await openSite({ pods, monotonicMs: () => 1, whileRead: () => whileRead() });
  site.onRead();
  await site.look();
  whileRead = async () => {
    pods.push(podOn('m1', 'late', 'hub'));
    expect((await site.permit('m1', {})).permitted).toEqual(['late']);
    expect((await site.permit('m1', { released: ['late'] })).released).toEqual(['late']);
  };
  await site.look();
  expect((await site.permit('m1', {})).permitted).toEqual([]);
});

const machine = (name: string, podsMax: string, ready: ConditionStatus = 'True'): KubeNode => ({
  metadata: { name, annotations: { [SITE_HUB]: 'hub' } },
  status: { allocatable: { cpu: '4', memory: '4Gi', pods: podsMax }, conditions: [{ type: 'Ready', status: ready }] },
});
const POLICY: KubeSitePolicy = {
  metadata: { name: 'plant' },
  spec: { hub: 'hub', nodes: ['m1', 'm2', 'm3'], namespaces: ['plant'] },
};

it('moves all pods of a silent machine in one look, each beside those before it', async () => {
  let monotonicMs = 1;
  const machine = (name: string, podsMax: string): KubeNode => ({
    metadata: { name, annotations: { [SITE_HUB]: 'hub' } },
    status: {
      allocatable: { cpu: '4', memory: '4Gi', pods: podsMax },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  });
  const site = await openSite({
    pods: ['a', 'b', 'c', 'd'].map((uid) => podOn('m1', uid, 'hub')),
    nodes: [machine('m1', '9'), machine('m2', '1'), machine('m3', '2')],
    policies: [{ metadata: { name: 'plant' }, spec: { hub: 'hub', nodes: ['m1', 'm2', 'm3'], namespaces: ['plant'] } }],
    monotonicMs: () => monotonicMs,
  });
  site.onRead();
  await site.look();
  monotonicMs += 3_600_000;
  await site.permit('m2', {});
  await site.permit('m3', {});
  await site.look();

  const copiesOn = async (nodeName: string) => (await site.permit(nodeName, {})).copies.length;
  expect([await copiesOn('m2'), await copiesOn('m3')]).toEqual([1, 2]);
});

describe('a power switch', () => {
  const asked: string[] = [];
  let answers: ((isOff: boolean) => void)[];
  let monotonicMs: number;
  let site: SiteRescheduling;
  const MINUTE_MS = 60_000;
  const LOOK_MS = 5_000;

  async function start(ready: ConditionStatus): Promise<void> {
    [asked.length, answers, monotonicMs] = [0, [], 1];
    site = await openSite({
      pods: [podOn('m1', 'a', 'hub')],
      nodes: [machine('m1', '9', ready), machine('m2', '9')],
      policies: [POLICY],
      monotonicMs: () => monotonicMs,
      switchOff(nodeName) {
        asked.push(nodeName);
        return new Promise((resolve) => answers.push(resolve));
      },
    });
    site.onRead();
    await site.look();
    // A new file permits what was there before it only after its time.
    monotonicMs += 60 * MINUTE_MS;
    site.onRead();
    await site.permit('m2', {});
    expect((await site.permit('m1', {})).permitted).toEqual(['a']);
    await site.look();
  }

  /** The other machine asks each five seconds, before a look. */
  async function pass(milliseconds: number, hasLink = false): Promise<void> {
    for (let left = milliseconds; left > 0; left -= LOOK_MS) {
      monotonicMs += Math.min(left, LOOK_MS);
      if (hasLink) site.onRead();
      await site.permit('m2', {});
      if (left > LOOK_MS) await site.look();
    }
  }

  async function answer(isOff: boolean): Promise<void> {
    answers.shift()?.(isOff);
    await new Promise(setImmediate);
  }

  const copies = async () => (await site.permit('m2', {})).copies.length;

  it('lets pods move before the time is over that they may run', async () => {
    await start('Unknown');
    await pass(MINUTE_MS);
    await site.look();
    await site.look();
    expect([asked, await copies()]).toEqual([['m1'], 0]);
    await answer(true);
    await site.look();
    expect(await copies()).toBe(1);
    expect((await site.permit('m1', {})).permitted).toEqual([]);
  });

  it('changes nothing when it fails, and is asked again after a minute', async () => {
    await start('Unknown');
    await pass(SILENT_MS);
    await site.look();
    await answer(false);
    await pass(MINUTE_MS - 1);
    await site.look();
    expect([asked, await copies()]).toEqual([['m1'], 0]);
    await pass(1);
    await site.look();
    expect(asked).toEqual(['m1', 'm1']);
  });

  it('counts for nothing when the machine has asked meanwhile', async () => {
    await start('Unknown');
    await pass(MINUTE_MS);
    await site.look();
    await pass(1);
    expect((await site.permit('m1', {})).permitted).toEqual(['a']);
    await answer(true);
    await pass(MINUTE_MS);
    await site.look();
    expect(await copies()).toBe(0);
  });

  it('is not asked for a machine that the cluster sees, as long as the link is there', async () => {
    await start('True');
    await pass(MINUTE_MS, true);
    await site.look();
    expect(asked).toEqual([]);
    await pass(MINUTE_MS);
    await site.look();
    expect(asked).toEqual(['m1']);
  });

  it.each(['looked', 'did not run'])(
    'is not asked for the last that asks after the hub %s, and no machine asked',
    async (how) => {
      await start('Unknown');
      for (let passedMs = 0; passedMs < SILENT_MS; passedMs += LOOK_MS) {
        monotonicMs += LOOK_MS;
        if (how === 'looked') await site.look();
      }
      await pass(15_000);
      await site.look();
      expect(asked).toEqual([]);
      await pass(SILENT_MS);
      await site.look();
      expect(asked).toEqual(['m1']);
    },
  );
});
