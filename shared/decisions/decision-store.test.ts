import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../fleet/policy.ts';
import type { ConsumedUnits, ItemStore } from '../store/item-store.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import type { DecisionDraft } from './decision-record.ts';
import { decisionName, decisionStore } from './decision-store.ts';
import { ledgerOver } from './ledger.ts';

const nameOf = (about: object): string =>
  decisionName({ about, act: 'act', rule: 'rule', atMs: 5, outcome: {} } as unknown as DecisionDraft);

it.each([
  [{ kind: 'Node', name: 'edge-1' }, /^node\.edge-1\.0000000000005-\w+$/],
  [{ kind: 'Pod', namespace: 'shop', name: 'web-0' }, /^pod\.shop\.web-0\.0000000000005-\w+$/],
  [{ kind: 'Zone', name: 'Eu/Central 1' }, /^zone\.eu-central-1-\w+\.0000000000005-\w+$/],
  [{ kind: 'Zone', name: '/hill/' }, /^zone\.hill-\w+\.0000000000005-\w+$/],
  [{ kind: 'Zone', name: '' }, /^zone\.\w+\.0000000000005-\w+$/],
])('a decision about %j has a valid name that shows its object', (about, pattern) => {
  expect(nameOf(about)).toMatch(pattern);
});

it('similar free texts get different names', () => {
  expect(nameOf({ kind: 'Zone', name: 'a/b' })).not.toBe(nameOf({ kind: 'Zone', name: 'a b' }));
  expect(nameOf({ kind: 'Zone', name: 'x'.repeat(300) }).length).toBeLessThanOrEqual(253);
});

it('the decisions about node a are none of node a.b, which may be in the same shard', async () => {
  const items = memoryItemStore();
  const ledger = ledgerOver(items, defaultPolicy);
  const draftOf = (name: string): DecisionDraft => ({
    ...{ act: 'Tainted', about: { kind: 'Node', name, uid: name }, atMs: 5, reason: 'r' },
    ...{ rule: 'evictions', inputs: {}, outcome: {} },
  });
  const names = Array.from({ length: 32 }, (_, index) => `a${index}`);
  for (const name of names) {
    await items.write(ledger.write(draftOf(name)));
    await items.write(ledger.write(draftOf(`${name}.b`)));
  }
  for (const name of names) {
    const { decisions } = await decisionStore(items).list({ nowMs: 5, limit: 10, about: { kind: 'Node', name } });
    expect(decisions.map(({ record }) => record.about.name)).toEqual([name]);
  }
});

describe('a record of more than 1 KB', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const draft: DecisionDraft = {
    act: 'Tainted',
    about: { kind: 'Node', name: 'edge-1', uid: 'u' },
    atMs: nowMs,
    reason: 'Ready is Unknown',
    rule: 'evictions',
    inputs: {
      taints: Array.from({ length: 30 }, (_, index) => ({ key: `example.com/${index}`, effect: 'NoExecute' })),
    },
    outcome: { kind: 'taint' },
  };

  it('is stored for one write unit, and is read back', async () => {
    const units: ConsumedUnits[] = [];
    const items = memoryItemStore({ onConsumed: (each) => units.push(each) });
    await ledgerOver(items, defaultPolicy).recordOnce(draft, {});
    expect(units.map((each) => each.writeUnits)).toEqual([1]);
    const { decisions } = await decisionStore(items).list({ nowMs, limit: 10 });
    expect(decisions.map(({ record }) => record)).toMatchObject([draft]);
  });
});

describe('records about many Nodes in one commit', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const names = Array.from({ length: 40 }, (_, index) => `edge-${index}`);
  const draftOf = (name: string, atMs = nowMs): DecisionDraft => ({
    act: 'MarkUnknown',
    about: { kind: 'Node', name, uid: `uid-${name}` },
    atMs,
    reason: 'No heartbeat or status for 42 s (grace period 40 s)',
    rule: 'silence',
    inputs: { health: { renewedAtMs: nowMs - 42_000 } },
    outcome: { mark: true, silentSeconds: 42, graceSeconds: 40 },
  });
  async function stored(drafts: readonly DecisionDraft[]) {
    const items = memoryItemStore();
    const ledger = ledgerOver(items, defaultPolicy);
    const writes = ledger.writeAll(drafts);
    for (const write of writes) await items.write(write);
    return { items, ledger, writes, store: decisionStore(items) };
  }
  const drafts = names.map((name) => draftOf(name));
  const decisionNames = drafts.map((draft) => decisionName(draft)).sort();

  it('share an item per shard', async () => {
    const { writes } = await stored(drafts);
    expect(writes.length).toBeLessThanOrEqual(8);
  });

  it('are read by name, by Node, and all in the order of their names, beside records of their own', async () => {
    const { items, ledger, store } = await stored(drafts);
    const own = { ...draftOf('edge-7', nowMs + 5_000), act: 'TaintLifted' } as const;
    await ledger.recordOnce(own, {});
    expect((await store.get(decisionName(drafts[7]!), nowMs))?.record).toMatchObject(drafts[7]!);
    expect(await store.get('node.edge-7.0000000000005-abc', nowMs)).toBeUndefined();
    const about = { kind: 'Node', name: 'edge-7' } as const;
    const { decisions } = await store.list({ nowMs, limit: 10, about });
    expect(decisions.map(({ record }) => record.act)).toEqual(['MarkUnknown', 'TaintLifted']);
    const all = await decisionStore(items).list({ nowMs, limit: 1_000 });
    expect(all.decisions.map(({ name }) => name)).toEqual([...decisionNames, decisionName(own)].sort());
    expect(all.next).toBeUndefined();
  });

  it('are listed in pages, each record once', async () => {
    const { store } = await stored([...drafts, ...names.map((name) => draftOf(name, nowMs + 5_000))]);
    const listed: string[] = [];
    let after: string | undefined;
    for (let pages = 0; pages < 20; pages += 1) {
      const page = await store.list({ nowMs, limit: 7, ...(after === undefined ? {} : { continueAfter: after }) });
      listed.push(...page.decisions.map(({ name }) => name));
      after = page.next;
      if (after === undefined) break;
    }
    expect(listed).toHaveLength(80);
    expect(listed).toEqual([...listed].sort());
    expect(new Set(listed).size).toBe(80);
  });

  it('end after their retention', async () => {
    const { store } = await stored(drafts);
    const laterMs = nowMs + 31 * 86_400_000;
    expect(await store.get(decisionName(drafts[7]!), laterMs)).toBeUndefined();
    expect((await store.list({ nowMs: laterMs, limit: 100 })).decisions).toEqual([]);
  });

  it('have items of their own where the name does not show the Node', async () => {
    const long = ['a', 'b'].map((first) => draftOf(`${first}${'x'.repeat(240)}`));
    const { writes, store } = await stored(long);
    expect(writes).toHaveLength(2);
    expect((await store.list({ nowMs, limit: 10, about: long[0]!.about })).decisions).toHaveLength(1);
    expect(await store.get(decisionName(long[1]!), nowMs)).toBeDefined();
  });
});

describe('records about pods in one commit', () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const draftOf = (name: string, atMs = nowMs, namespace = 'my-shop'): DecisionDraft => ({
    act: 'PodScheduled',
    about: { kind: 'Pod', namespace, name, uid: `uid-${name}` },
    atMs,
    reason: 'bound to edge-1: 1 of 1 examined nodes is feasible',
    rule: 'podPlacement',
    inputs: { podUid: `uid-${name}`, best: [], nodeName: 'edge-1', nodes: 1, examined: 1, feasible: 1, rejected: {} },
    outcome: { nodeName: 'edge-1' },
  });
  const podNames = (set: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${set}-${index.toString(36).padStart(5, 'b')}`);
  const about = (name: string) => ({ kind: 'Pod', namespace: 'my-shop', name }) as const;
  async function stored(commits: readonly (readonly DecisionDraft[])[]) {
    const items = memoryItemStore();
    const ledger = ledgerOver(items, defaultPolicy);
    const writes = commits.flatMap((drafts) => ledger.writeAll(drafts));
    for (const write of writes) await items.write(write);
    return { items, ledger, writes, store: decisionStore(items) };
  }

  it('share an item with those of the same set', async () => {
    const pods = [...podNames('web-7d9c6b8f4', 8), ...podNames('api-5c8', 3), 'single', 'db-0'];
    const { writes, store } = await stored([pods.map((name) => draftOf(name))]);
    expect(writes.map(({ key }) => key.pk.split('#')[0]).sort()).toEqual(['d', 'd', 'dp', 'dp']);
    for (const name of pods) {
      const { decisions } = await store.list({ nowMs, limit: 10, about: about(name) });
      expect(decisions.map(({ record }) => record)).toMatchObject([draftOf(name)]);
      expect(await store.get(decisionName(draftOf(name)), nowMs)).toEqual(decisions[0]);
    }
    expect(await store.get(decisionName(draftOf('web-7d9c6b8f4-other')), nowMs)).toBeUndefined();
    expect(await store.get('pod.my-shop.web-7d9c6b8f4-bbbb0.never-abc', nowMs)).toBeUndefined();
  });

  it('are listed beside a record of its own, and apart from those of other namespaces and sets', async () => {
    const pods = podNames('web', 4);
    const others = [
      ...pods.map((name) => draftOf(name, nowMs, 'my')),
      ...podNames('web.1', 3).map((name) => draftOf(name)),
    ];
    const { ledger, store } = await stored([pods.map((name) => draftOf(name)), others]);
    const held: DecisionDraft = { ...draftOf(pods[2]!, nowMs + 5_000), act: 'EvictionHeld', rule: 'podEviction' };
    await ledger.recordOnce(held, {});
    const { decisions } = await store.list({ nowMs, limit: 10, about: about(pods[2]!) });
    expect(decisions.map(({ record }) => record.act)).toEqual(['PodScheduled', 'EvictionHeld']);
  });

  it.each([1, 3, 8, 100])('are listed in pages of %i, each record once', async (limit) => {
    const sets = ['web-7d9c6b8f4', 'web', 'api-5c8'].map((set) => podNames(set, 12));
    const commits = [0, 1_000].flatMap((later) => sets.map((pods) => pods.map((name) => draftOf(name, nowMs + later))));
    const { store } = await stored([...commits, [draftOf('single')]]);
    const listed: string[] = [];
    let after: string | undefined;
    for (let pages = 0; pages < 200; pages += 1) {
      const page = await store.list({ nowMs, limit, ...(after === undefined ? {} : { continueAfter: after }) });
      expect(page.decisions.length).toBeLessThanOrEqual(limit);
      listed.push(...page.decisions.map(({ name }) => name));
      after = page.next;
      if (after === undefined) break;
    }
    expect(new Set(listed).size).toBe(73);
    expect(listed).toHaveLength(73);
  });

  it('are continued after the last record although another item appeared before theirs', async () => {
    const { items, ledger, store } = await stored([podNames('web', 12).map((name) => draftOf(name))]);
    const first = await store.list({ nowMs, limit: 5 });
    for (const write of ledger.writeAll([draftOf('earlier')])) await items.write(write);
    const rest = await store.list({ nowMs, limit: 100, ...(first.next && { continueAfter: first.next }) });
    expect(rest.decisions.map(({ record }) => record.about.name).sort()).toEqual(
      ['earlier', ...podNames('web', 12).slice(5)].sort(),
    );
  });

  it('end after their retention', async () => {
    const { store } = await stored([podNames('web', 4).map((name) => draftOf(name))]);
    const laterMs = nowMs + 31 * 86_400_000;
    expect((await store.list({ nowMs: laterMs, limit: 10 })).decisions).toEqual([]);
    expect((await store.list({ nowMs: laterMs, limit: 10, about: about('web-bbbb1') })).decisions).toEqual([]);
    expect(await store.get(decisionName(draftOf('web-bbbb1')), laterMs)).toBeUndefined();
  });

  it('of a large set are read from the newest one', async () => {
    const commits = Array.from({ length: 6 }, (_, index) =>
      podNames('web', 2).map((name) => draftOf(name, nowMs + index)),
    );
    const { items } = await stored(commits);
    const onePerPage: Pick<ItemStore, 'get' | 'query'> = {
      get: items.get,
      query: (request) => items.query({ ...request, limit: 1 }),
    };
    const page = await decisionStore(onePerPage).list({ nowMs, limit: 10, about: about('web-bbbb1') });
    expect(page.decisions.map(({ record }) => record.atMs - nowMs)).toEqual([2, 3, 4, 5]);
  });
});
