/**
 * A zone loses power, two of its machines recover, the third stays dead, and EC2 says that it is terminated: what
 * `nodekeeper explain` says about it, and that each rule says the same when it is run again.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { CommandError } from '../../cli/command.ts';
import { explainCommand } from '../../cli/explain.ts';
import { replay } from '../../cli/replay.ts';
import { refusalsAdded } from '../../shared/access/refusal-store.ts';
import { type DecisionRecord, sealed } from '../../shared/decisions/decision-record.ts';
import { decisionStore, decisionWrite, type NamedDecision } from '../../shared/decisions/decision-store.ts';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import { SITE_HUB } from '../../shared/kinds/pods/site-permit.ts';
import { type ApiInMemory, apiInMemory, eventsOf, TABLE } from '../support/api-in-memory.ts';
import { type ControlledFleet, controlledFleet, START_MS, settledFleet } from '../support/controlled-fleet.ts';

const DARK = ['dark-0', 'dark-1', 'dark-2'];
const LIT = ['lit-0', 'lit-1'];
const ID_OF_DARK_2 = 'i-0000000000000dead';
/** Seconds. */
const DARK_FROM = 30;
const BACK_AT = 130;
const TERMINATED_AT = 400;
const END = 500;

async function theStory(): Promise<ControlledFleet> {
  const fleet = controlledFleet({ hasCloud: true });
  const providerIds = new Map([['dark-2', `aws:///eu-central-1a/${ID_OF_DARK_2}`]]);
  fleet.cloud.put({
    instanceId: ID_OF_DARK_2,
    zone: 'eu-central-1a',
    instanceType: 'm5.large',
    launchedAtMs: fleet.nowMs() - 3_600_000,
  });
  for (const name of [...DARK, ...LIT]) {
    const providerID = providerIds.get(name);
    await fleet.register(name, { zone: name.split('-')[0]!, ...(providerID === undefined ? {} : { providerID }) });
    await fleet.post(name);
    await fleet.addPod(`on-${name}`, name);
  }
  await fleet.streams();
  for (let seconds = 0; seconds <= END; seconds += 5) {
    fleet.at(seconds);
    const back = seconds >= BACK_AT ? ['dark-0', 'dark-1'] : [];
    const alive = seconds < DARK_FROM ? [...LIT, ...DARK] : [...LIT, ...back];
    if (seconds % 10 === 0) await fleet.beat(...alive);
    if (seconds === BACK_AT) for (const name of back) await fleet.post(name);
    if (seconds === TERMINATED_AT) fleet.cloud.terminate(ID_OF_DARK_2);
    await fleet.tick();
    await fleet.controllers.tickCloudNode(fleet.slot());
    await fleet.streams();
    if (seconds % 20 === 0) await fleet.collect();
  }
  return fleet;
}

let fleet: ControlledFleet;
let api: ApiInMemory;
beforeAll(async () => {
  fleet = await theStory();
  api = apiInMemory({ items: fleet.tables });
  api.advance(fleet.nowMs() - api.nowMs());
});

const explain = (...args: string[]): Promise<string[]> => explainThrough(api, ...args);

async function explainThrough(api: ApiInMemory, ...args: string[]): Promise<string[]> {
  const lines: string[] = [];
  const io = { environment: {}, nowMs: api.nowMs(), print: (line: string) => lines.push(line) };
  const access = ['--server', 'https://cluster.example', '--token', 'token'];
  const told = explainCommand([...args, ...access], io, async (_access, { method, path }) => {
    const answer = await api.send(method, path);
    if (answer.code >= 300) throw new CommandError(answer.body.message, '');
    return answer.body;
  });
  await told.catch((error: Error) => lines.push(`error: ${error.message}`));
  return lines;
}

/** `act about` of each line, in order; the act of events as well. */
const gist = (lines: readonly string[]): string[] =>
  lines.flatMap((line) => {
    const match = /^2026-\S+ {2}.{7} {2}(\S+) +(?:\[(.*?)\])?/.exec(line);
    return match === null ? [] : [`${match[1]} ${match[2] ?? 'itself'}`];
  });

const recordsOf = async (items = fleet.tables): Promise<readonly NamedDecision[]> =>
  (await decisionStore(items).list({ nowMs: api.nowMs(), limit: 10_000 })).decisions;

describe('explain', () => {
  it('explains the machine that did not recover', async () => {
    const lines = await explain('node', 'dark-2');
    expect(lines[0]).toMatch(/^node dark-2 \(uid \S+, zone dark\), since 2025-12-31T00:08:20Z$/);
    expect(gist(lines)).toEqual([
      'TaintLifted itself',
      'ZoneStateSet zone dark',
      'RegisteredNode event',
      'MarkUnknown itself',
      'NodeKept itself',
      'ZoneStateSet zone dark',
      'NodeNotReady event',
      'EvictionHeld zone dark',
      'Tainted itself',
      'ZoneStateSet zone dark',
      'NodeDeleted itself',
      'RemovingNode event',
      'DeletingNode event',
    ]);
    const text = lines.join('\n');
    for (const essential of [
      '00:01:05Z     +65s  MarkUnknown             No heartbeat or status for 45 s (grace period 40 s); 3 of 3 nodes in its zone are not ready',
      'NodeKept                EC2 instance state running: the Node is kept',
      '[zone dark] Normal to FullDisruption: 3 of 3 nodes are not ready',
      '[zone dark] 2 nodes wait for the NoExecute taint: one taint every 10 s, next at 2026-01-01T00:01:15Z',
      'Ready is Unknown: node.kubernetes.io/unreachable:NoExecute added after 20 s in the eviction queue; zone dark: one taint every 10 s',
      '[zone dark] FullDisruption to Normal: 1 of 3 nodes are not ready',
      '00:06:40Z   +4m30s  NodeDeleted             EC2 instance state terminated: the Node is deleted',
    ]) {
      expect(text).toContain(essential);
    }
  });

  it('explains the machine that recovered, and its pod, which was not deleted', async () => {
    const node = gist(await explain('node', 'dark-0')).filter((each) => each.endsWith('itself'));
    expect(node).toEqual([
      'TaintLifted itself',
      'MarkUnknown itself',
      'Tainted itself',
      // NoExecute as soon as it is Ready, NoSchedule with its conditions.
      'TaintLifted itself',
      'TaintLifted itself',
    ]);
    const lines = await explain('pod', 'default/on-dark-0');
    expect(gist(lines).filter((each) => each.endsWith('itself'))).toEqual([
      'PodEvictionSet itself',
      'PodEvictionCancelled itself',
    ]);
    expect(lines.join('\n')).toMatch(
      /PodEvictionSet +node dark-0: node.kubernetes.io\/unreachable is tolerated for 300 s, eviction due at 2026-01-01T00:06:05Z/,
    );
  });

  it('explains why a pod was deleted, with the changes of its node', async () => {
    const lines = await explain('pod', 'default/on-dark-2');
    expect(gist(lines)).toEqual([
      'TaintLifted node dark-2',
      'MarkUnknown node dark-2',
      'NodeKept node dark-2',
      'NodeNotReady event',
      'Tainted node dark-2',
      'PodEvictionSet itself',
      'PodDeleted itself',
      'TaintManagerEviction event',
      'NodeDeleted node dark-2',
      'PodCollected itself',
    ]);
    const text = lines.join('\n');
    expect(text).toContain(
      'node dark-2: node.kubernetes.io/unreachable is tolerated for 300 s, eviction was due at 2026-01-01T00:06:25Z',
    );
    expect(text).toContain('its node no longer exists (dark-2)');
  });

  it('explains why a pod that must not run twice was removed, and its rule says the same again', async () => {
    const { fleet: silent } = await settledFleet({ a: 3 });
    await silent.addPod('web', 'a-2');
    await silent.changePod('web', (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, annotations: { [OFFLINE_STOP_AFTER]: '10m' } },
    }));
    await silent.run(0, 700, () => silent.beat('a-0', 'a-1'));
    const served = apiInMemory({ items: silent.tables });
    served.advance(silent.nowMs() - served.nowMs());
    const lines = await explainThrough(served, 'pod', 'default/web', '--verify');
    // The timer of the removal is set in the millisecond of the mark: their order is that of their names.
    const acts = gist(lines).filter((each) => each.endsWith('itself'));
    expect(acts.toSorted()).toEqual([
      'PodDeleted itself',
      'PodEvictionSet itself',
      'PodEvictionSet itself',
      'PodRemoved itself',
    ]);
    expect(acts.at(-1)).toBe('PodRemoved itself');
    const why =
      'node a-2: no heartbeat or status since 2026-01-01T00:00:00Z, and the machine has stopped the pod after 690.6 s';
    expect(lines.join('\n')).toContain(`${why}, removal due at 2026-01-01T00:11:30Z  = same`);
    expect(lines.join('\n')).toContain(`${why}, removal was due at 2026-01-01T00:11:30Z  = same`);
    expect(lines.at(-1)).toMatch(/decisions replayed: same outcome$/);
  });

  it('explains that a pod was left to the hub of its site, which has moved it', async () => {
    const { fleet: silent } = await settledFleet({ a: 3 });
    const served = apiInMemory({ items: silent.tables });
    const { body: me } = await served.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {} });
    const hub: string = me.status.userInfo.username;
    await silent.addPod('web', 'a-2');
    await silent.changePod('web', (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, annotations: { [OFFLINE_STOP_AFTER]: '10m', [SITE_HUB]: hub } },
    }));
    await silent.changeNode('a-0', (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [SITE_HUB]: hub } },
    }));
    await silent.run(0, 900, () => silent.beat('a-0', 'a-1'));
    served.advance(silent.nowMs() - served.nowMs());
    await served.send('POST', '/apis/nodekeeper.dev/v1alpha1/sitepolicies', {
      body: { metadata: { name: 'site' }, spec: { hub, nodes: ['a-0'], namespaces: ['default'] } },
    });
    const { body: web } = await served.send('GET', '/api/v1/namespaces/default/pods/web');
    const copy = { uid: '11111111-2222-4333-8444-555555555555', nodeName: 'a-0' };
    const why = 'node a-2 does not answer the hub, and its permits are over';
    const pod = { namespace: 'default', name: 'web', from: [web.metadata.uid], copy };
    const moved = await served.send('POST', '/apis/nodekeeper.dev/v1alpha1/sitemoves', {
      contentType: 'application/json',
      body: { ...pod, decidedAt: '2026-01-01T00:12:00Z', why },
    });
    expect(moved.body).toEqual({ outcome: 'done' });
    const lines = await explainThrough(served, 'pod', 'default/web', '--verify');
    const text = lines.join('\n');
    expect(gist(lines).filter((each) => each.endsWith('itself'))).toEqual(['PodLeftToSite itself', 'PodMoved itself']);
    expect(text).toMatch(new RegExp(`; left to ${hub}, the hub of its site, eviction due at .*  = same`));
    expect(text).toMatch(
      new RegExp(`00:12:00.*PodMoved.*${hub}: from node a-2 to a-0 as web-11111111, without the cluster: ${why}`),
    );
    const ofCopy = (await explainThrough(served, 'pod', 'default/web-11111111')).join('\n');
    expect(ofCopy).toMatch(/PodMoveMerged.*in the place of pod web/);
    expect(ofCopy).toContain(`which ${hub} moved at 2026-01-01T00:12:00Z: ${why}`);
  });

  it('runs every rule again, to the same end', async () => {
    for (const name of [...DARK, ...LIT]) {
      for (const about of [
        ['node', name],
        ['pod', `default/on-${name}`],
      ] as const) {
        const lines = await explain(...about, '--verify');
        expect(lines.at(-1)).toMatch(/^(\d+ decisions replayed: same outcome|error: no decision about)/);
      }
    }
    for (const { name, record } of await recordsOf())
      expect([name, replay(record)]).toMatchObject([name, { same: true }]);
  });

  it('finds a record that was changed since', async () => {
    const found = (await recordsOf()).find(
      ({ record }) => record.act === 'MarkUnknown' && record.about.name === 'dark-1',
    )!;
    const planted = structuredClone(found.record) as { inputs: { health: { renewedAtMs: number } } };
    planted.inputs.health.renewedAtMs += 30_000;
    const { sum: _, ...rest } = planted as unknown as DecisionRecord;
    // Whoever is careful enough to seal it anew is still found out by the rule.
    const forged = sealed(rest as Omit<DecisionRecord, 'sum'>);
    await fleet.tables.write(decisionWrite(forged));
    const lines = await explain('node', 'dark-1', '--verify');
    expect(lines.at(-1)).toMatch(/^error: 1 of \d+ decisions have another outcome$/);
    expect(lines.at(-2)).toContain(
      'recorded {"mark":true,"silentSeconds":45,"graceSeconds":40}, now {"kind":"nothing"}',
    );
    expect(lines.filter((line) => line.endsWith('≠ DIFFERENT'))).toHaveLength(1);
    await fleet.tables.write(decisionWrite({ ...found.record, reason: 'no reason' }));
    expect((await explain('node', 'dark-1', '--verify')).at(-2)).toContain(
      'the record was changed after it was written',
    );
    await fleet.tables.write(decisionWrite(found.record));
  });

  it('returns the same as JSON', async () => {
    const told = JSON.parse((await explain('node', 'dark-2', '--json', '--since', '1h')).join('\n'));
    expect(told).toMatchObject({ about: { kind: 'Node', name: 'dark-2' }, zone: 'dark' });
    expect(told.steps[3]).toMatchObject({
      what: 'MarkUnknown',
      record: { v: 1, rule: 'silence', slot: expect.any(Number), fence: expect.any(Number) },
    });
  });

  it.each([
    [['node', 'absent'], 'no decision about node absent since'],
    [['node', 'dark-2', '--since', 'soon'], '--since must be a duration such as 30m, 24h or 7d, not soon'],
    [['zone', 'dark'], 'explain does not support zone, only node, pod, deployment'],
    [['node'], 'the name of the object is missing'],
  ])('says what is wrong with %j', async (args, message) => {
    expect((await explain(...args)).join()).toContain(`error: ${message}`);
  });
});

/** `WRITE_DOCS=1` writes the examples anew. */
describe('docs/explain.md', () => {
  const DOC = new URL('../../docs/explain.md', import.meta.url);

  it('shows what is really said', async () => {
    const first = '$ npx nodekeeper explain node dark-2 --verify\n';
    const said = (await explain('node', 'dark-2', '--verify'))
      // Whatever the policy of the day hashes to.
      .map((line) => line.trimEnd().replace(/^policy .*/, 'policy 0ad3e236a3d743e8'))
      .join('\n');
    const before = readFileSync(DOC, 'utf8');
    const from = before.indexOf(first) + first.length;
    const text = `${before.slice(0, from)}${said}\n${before.slice(before.indexOf('```', from))}`;
    if (process.env['WRITE_DOCS'] === '1') writeFileSync(DOC, text);
    expect(readFileSync(DOC, 'utf8')).toBe(text);
  });
});

describe('the resource', () => {
  const DECISIONS = '/apis/nodekeeper.dev/v1alpha1/decisions';

  it('lists by what it is about, in a table, with one query for its records and one for shared ones', async () => {
    const { body } = await api.send('GET', `${DECISIONS}?fieldSelector=node%3Ddark-2`, { accept: TABLE });
    expect(body.columnDefinitions.slice(0, 4).map(({ name }: { name: string }) => name)).toEqual([
      'Age',
      'About',
      'Act',
      'Reason',
    ]);
    expect(body.rows.map(({ cells }: { cells: string[] }) => cells.slice(1, 3))).toEqual([
      ['node/dark-2', 'TaintLifted'],
      ['node/dark-2', 'MarkUnknown'],
      ['node/dark-2', 'NodeKept'],
      ['node/dark-2', 'Tainted'],
      ['node/dark-2', 'NodeDeleted'],
    ]);
    fleet.consumed();
    await api.send('GET', `${DECISIONS}?fieldSelector=pod%3Ddefault%2Fon-dark-2`);
    expect(fleet.consumed().requests).toHaveLength(2);
  });

  it.each(['on-dark-2', 'a/b/c'])(
    'says what a selector of pods looks like, instead of finding nothing: %s',
    async (pod) => {
      const { body } = await api.send('GET', `${DECISIONS}?fieldSelector=${encodeURIComponent(`pod=${pod}`)}`);
      expect([body.code, body.message]).toEqual([400, `field label pod: expected NAMESPACE/NAME, not "${pod}"`]);
    },
  );

  it('returns one by its name, and refuses writes of every client', async () => {
    const [first] = (await api.send('GET', `${DECISIONS}?fieldSelector=about.kind%3DZone,about.name%3Ddark`)).body
      .items;
    const one = await api.send('GET', `${DECISIONS}/${first.metadata.name}`);
    expect(one.body).toMatchObject({
      kind: 'Decision',
      spec: { about: { kind: 'Zone', name: 'dark' }, act: 'ZoneStateSet' },
    });
    const path = `${DECISIONS}/${first.metadata.name}`;
    for (const [method, where] of [
      ['POST', DECISIONS],
      ['PUT', path],
      ['PATCH', path],
      ['DELETE', path],
      ['DELETE', DECISIONS],
    ] as const) {
      expect([
        method,
        (await api.send(method, where, { body: one.body, contentType: 'application/merge-patch+json' })).code,
      ]).toEqual([method, 405]);
    }
  });

  it('is watched by what it is about', async () => {
    const watch = `${DECISIONS}?watch=1&timeoutSeconds=1&resourceVersion=0`;
    expect(
      eventsOf(await api.send('GET', `${watch}&fieldSelector=node%3Ddark-2`))
        .map(({ type }) => type)
        .slice(0, 5),
    ).toEqual(Array(5).fill('ADDED'));
    expect((await api.send('GET', watch)).text).toContain('names what they are about');
  });

  it('forgets after thirty days', async () => {
    const store = decisionStore(fleet.tables);
    const later = START_MS + 30 * 86_400_000;
    expect(
      (await store.list({ nowMs: later, limit: 1_000 })).decisions.every(({ record }) => record.atMs > START_MS),
    ).toBe(true);
    expect((await store.list({ nowMs: later + END * 1_000, limit: 1_000 })).decisions).toEqual([]);
  });
});

describe('explain of an object that cannot be written', () => {
  it('prints what was not done to a Node that is too large, and why', async () => {
    const { fleet } = await settledFleet({ a: 4 });
    const length = JSON.stringify(await fleet.node('a-0')).length;
    const annotations = { 'example.com/large': 'x'.repeat(119_900 - length) };
    await fleet.changeNode('a-0', (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
    await fleet.run(0, 60, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-1', 'a-2', 'a-3') : Promise.resolve()));
    const api = apiInMemory({ items: fleet.tables });
    api.advance(fleet.nowMs() - api.nowMs());
    const lines = await explainThrough(api, 'node', 'a-0', '--verify');
    const notWritten = lines.filter((line) => line.includes('NotWritten'));
    expect(notWritten).toHaveLength(1);
    expect(notWritten[0]).toMatch(
      /could not mark the node Unknown: the object has 119\d{3} characters and would exceed 120000 characters/,
    );
    expect(lines.join('\n')).not.toContain('differs');
  });
});

describe('a node that is over its limit', () => {
  it('has the number of its refused requests, and who decided', async () => {
    const { fleet, names } = await settledFleet({ a: 2 });
    await refusalsAdded(fleet.tables)(
      { kind: 'node', username: 'system:node:a-0', over: 'time', count: 600 },
      fleet.nowMs(),
    );
    await fleet.run(5, 90, async (seconds) => seconds % 10 === 0 && fleet.beat(...names));
    const api = apiInMemory({ items: fleet.tables });
    api.advance(fleet.nowMs() - api.nowMs());
    const lines = await explainThrough(api, 'node', 'a-0', '--verify');
    expect(lines.filter((line) => line.includes('RequestsRefused'))).toEqual([
      expect.stringMatching(
        /600 requests of system:node:a-0 were refused in the minute from .*: over its share .* = same$/,
      ),
    ]);
    expect((await explainThrough(api, 'node', 'a-1')).join()).not.toContain('RequestsRefused');
  });
});
