import { describe, expect, it } from 'vitest';
import { bootstrapTokenStore } from '../../../shared/access/bootstrap-token-store.ts';
import { type NodeKeyStore, nodeKeyStore } from '../../../shared/access/node-key-store.ts';
import type { InstanceState } from '../../../shared/fleet/instances/instance.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { type EnrolDependencies, type EnrolledBy, type EnrolRequest, enrolNode } from './enrol-node.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const publicKey = { kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(43) } as const;
const key = (keyId: string) => ({ keyId, publicKey });
const ada: EnrolledBy = { kind: 'user', name: 'ada' };
const token: EnrolledBy = { kind: 'bootstrapToken', id: 'token0' };
const INSTANCE = 'i-0123456789abcdef0';
const instance: EnrolledBy = { kind: 'instance', instanceId: INSTANCE };

/** What EC2 says of the instance. */
type Known = InstanceState | 'failed' | 'unknown' | 'none';

function cluster(options: { nodes?: readonly string[]; cloud?: Known } = {}) {
  const items = memoryItemStore();
  const identities = nodeKeyStore(items);
  const tokens = bootstrapTokenStore(items);
  const described: unknown[] = [];
  let uids = 0;
  const uuid = (): string => {
    uids += 1;
    return `uid-${uids}`;
  };
  const { nodes = [], cloud = 'running' } = options;
  const describeInstances: NonNullable<EnrolDependencies['cloud']>['describeInstances'] = async (asked) => {
    described.push(...asked);
    if (cloud === 'none' || cloud === 'unknown') return new Map();
    const answer = cloud === 'failed' ? { kind: 'failed' as const } : { kind: 'found' as const, state: cloud };
    const metadata = { addresses: [{ type: 'Hostname', address: 'edge-7' }] };
    return new Map([[INSTANCE, { answer, metadata }]]) as never;
  };
  const dependencies: EnrolDependencies = {
    identities,
    tokens,
    hasNode: async (name) => nodes.includes(name),
    random: { uuid, fraction: () => 0 },
    pause: async () => {},
    ...(cloud === 'none' ? {} : { cloud: { describeInstances } }),
  };
  const enrol = (by: EnrolledBy, more: Partial<EnrolRequest> = {}) =>
    enrolNode(dependencies, { nodeName: 'n1', key: key('k1'), by, nowMs: NOW_MS, dryRun: false, ...more });
  return { items, identities, tokens, dependencies, described, enrol };
}

async function clusterWithToken(more: object = {}, options: Parameters<typeof cluster>[0] = {}) {
  const made = cluster(options);
  const expiresAtMs = NOW_MS + 1;
  const stored = { id: 'token0', uid: 'u', createdAtMs: 0, secretSha256: '', expiresAtMs, uses: 2, usesLeft: 2 };
  await made.tokens.create({ ...stored, reissue: false, ...more });
  return { ...made, usesLeft: async () => (await made.tokens.find('token0'))?.usesLeft };
}

const identity = (more: object = {}) => ({
  nodeName: 'n1',
  uid: 'uid-1',
  createdAtMs: NOW_MS,
  keys: [{ ...key('k1'), addedAtMs: NOW_MS }],
  source: 'user/ada',
  version: NOW_MS * 1_000,
  ...more,
});

describe('a person', () => {
  it('enrols a free name, with labels', async () => {
    const { enrol, identities } = cluster();
    expect(await enrol(ada)).toEqual({ kind: 'created', identity: identity() });
    expect(await identities.read('n1')).toEqual(identity());
    const labels = { site: 'north' };
    expect(await enrol({ ...ada, labels }, { nodeName: 'n2' })).toMatchObject({ identity: { labels } });
  });

  it('gets the identity again for the same key, and none of another key', async () => {
    const { enrol } = cluster();
    await enrol(ada);
    expect(await enrol(ada, { nowMs: NOW_MS + 1 })).toEqual({ kind: 'present', identity: identity() });
    expect(await enrol(ada, { key: key('k2') })).toEqual({ kind: 'taken' });
  });

  it('sees what a dry run would do, and nothing is stored', async () => {
    const { enrol, items } = cluster();
    expect(await enrol(ada, { dryRun: true })).toEqual({ kind: 'created', identity: identity({ version: 0 }) });
    expect(items.items('control')).toEqual([]);
  });
});

describe('a bootstrap token', () => {
  it('enrols a free name with its labels, and is used once by that', async () => {
    const { enrol, usesLeft } = await clusterWithToken({ nodeLabels: { site: 'north' } });
    const source = 'bootstraptoken/token0';
    expect(await enrol(token)).toEqual({
      kind: 'created',
      identity: identity({ source, labels: { site: 'north' } }),
    });
    expect(await usesLeft()).toBe(1);
    expect((await enrol(token)).kind).toBe('present');
    expect(await usesLeft()).toBe(1);
  });

  it.each([
    ['that was revoked', {}, { ...token, id: 'other0' }, 'bootstrap token other0 was revoked'],
    ['that has expired', { expiresAtMs: NOW_MS }, token, 'bootstrap token token0 has expired'],
    ['for other names', { nodeNamePattern: 'x*' }, token, 'bootstrap token token0 is for names like "x*"'],
  ] as const)('%s enrols nothing', async (_, more, by, reason) => {
    const { enrol, identities } = await clusterWithToken(more);
    expect(await enrol(by)).toEqual({ kind: 'forbidden', reason });
    expect(await identities.read('n1')).toBeUndefined();
  });

  it('that is used up between the decision and the write is refused by the next decision', async () => {
    const { enrol, dependencies, usesLeft } = await clusterWithToken({ uses: 1, usesLeft: 1 });
    let isFirst = true;
    const hasNode = async () => {
      if (isFirst) {
        isFirst = false;
        await enrol(token, { nodeName: 'faster', key: key('k9') });
      }
      return false;
    };
    const late = { nodeName: 'n1', key: key('k1'), by: token, nowMs: NOW_MS, dryRun: false };
    const answer = await enrolNode({ ...dependencies, hasNode }, late);
    expect(answer).toEqual({ kind: 'forbidden', reason: 'bootstrap token token0 has no uses left' });
    expect(await usesLeft()).toBe(0);
  });

  it('takes over a name only with reissue: the keys that it had are replaced', async () => {
    const plain = await clusterWithToken();
    await plain.enrol(ada);
    expect(await plain.enrol(token, { key: key('k2') })).toEqual({ kind: 'taken' });
    expect(await plain.usesLeft()).toBe(2);
    const { enrol, identities, usesLeft } = await clusterWithToken({ reissue: true });
    await enrol(ada);
    expect((await enrol(token, { key: key('k2') })).kind).toBe('created');
    expect((await identities.read('n1'))?.keys.map(({ keyId }) => keyId)).toEqual(['k2']);
    expect(await usesLeft()).toBe(1);
  });

  it('takes over a Node without an identity only if it is for this name', async () => {
    const [plain, own] = [
      await clusterWithToken({}, { nodes: ['n1'] }),
      await clusterWithToken({ nodeNamePattern: 'n1' }, { nodes: ['n1'] }),
    ];
    expect(await plain.enrol(token)).toMatchObject({ kind: 'forbidden', reason: expect.stringContaining('Node "n1"') });
    expect((await plain.enrol(token, { nodeName: 'n2' })).kind).toBe('created');
    expect((await own.enrol(token)).kind).toBe('created');
  });
});

describe('an instance', () => {
  it('enrols once, by one of its names', async () => {
    const { enrol, identities, described } = cluster();
    const named = { nodeName: 'edge-7' };
    expect(await enrol(instance, named)).toMatchObject({
      kind: 'created',
      identity: { nodeName: 'edge-7', source: `instance/${INSTANCE}` },
    });
    expect(described).toEqual([{ instanceId: INSTANCE, zone: undefined, region: undefined }]);
    expect(await identities.hasEnrolled(INSTANCE)).toBe(true);
    expect(await enrol(instance, { nodeName: INSTANCE })).toEqual({
      kind: 'forbidden',
      reason: `instance ${INSTANCE} has enrolled before`,
    });
    // Not even its own name, with another key.
    expect(await enrol(instance, { ...named, key: key('k2') })).toEqual({ kind: 'taken' });
  });

  it.each([
    ['none', 'forbidden', 'this cluster does not enrol instances by their identity documents'],
    ['unknown', 'forbidden', `instance ${INSTANCE} is not running`],
    ['terminated', 'forbidden', `instance ${INSTANCE} is not running`],
    ['failed', 'unavailable', `EC2 could not be asked about ${INSTANCE}`],
  ] as const)('enrols nothing when EC2 says %s', async (cloud, kind, reason) => {
    const { enrol, items } = cluster({ cloud });
    expect(await enrol(instance, { nodeName: 'edge-7' })).toEqual({ kind, reason });
    expect(items.items('control')).toEqual([]);
  });

  it('that EC2 knows without addresses is named by its id', async () => {
    const { dependencies } = cluster();
    const known = new Map([[INSTANCE, { answer: { kind: 'found', state: 'running' } }]]);
    const cloud = { describeInstances: async () => known as never };
    const request = { key: key('k1'), by: instance, nowMs: NOW_MS, dryRun: false };
    const enrol = (nodeName: string) => enrolNode({ ...dependencies, cloud }, { ...request, nodeName });
    expect((await enrol('edge-7')).kind).toBe('forbidden');
    expect((await enrol(INSTANCE)).kind).toBe('created');
  });
});

describe('a node', () => {
  const signedBy = (keyId: string): EnrolledBy => ({ kind: 'node', keyId });
  const keysOf = async ({ identities }: ReturnType<typeof cluster>) =>
    (await identities.read('n1'))?.keys.map(({ keyId, addedAtMs }) => [keyId, addedAtMs - NOW_MS]);

  it('adds a key, and drops the one before when it has signed with the new one', async () => {
    const made = cluster();
    await made.enrol(ada);
    const rotate = (by: string, wanted: string, nowMs: number) =>
      made.enrol(signedBy(by), { key: key(wanted), nowMs: NOW_MS + nowMs });
    const added = await rotate('k1', 'k2', 1);
    expect(added).toMatchObject({ kind: 'present', identity: { version: (NOW_MS + 1) * 1_000 } });
    expect(await keysOf(made)).toEqual([
      ['k1', 0],
      ['k2', 1],
    ]);
    // A repeated request writes nothing.
    expect(await rotate('k1', 'k2', 2)).toEqual(added);
    expect(await rotate('k1', 'k3', 3)).toMatchObject({ kind: 'present' });
    expect(await keysOf(made)).toEqual([
      ['k1', 0],
      ['k3', 3],
    ]);
    await rotate('k3', 'k3', 4);
    expect(await keysOf(made)).toEqual([['k3', 3]]);
    expect(await rotate('k1', 'k4', 5)).toEqual({
      kind: 'forbidden',
      reason: 'the key that signed this request was revoked',
    });
  });

  it('is shown the keys of a dry run, and they are not stored', async () => {
    const made = cluster();
    await made.enrol(ada);
    expect(await made.enrol(signedBy('k1'), { key: key('k2'), dryRun: true })).toMatchObject({
      kind: 'present',
      identity: { keys: [{ keyId: 'k1' }, { keyId: 'k2' }], version: NOW_MS * 1_000 },
    });
    expect(await keysOf(made)).toEqual([['k1', 0]]);
  });

  it('without an identity adds no key', async () => {
    expect((await cluster().enrol(signedBy('k1'))).kind).toBe('forbidden');
  });

  it('decides again when its identity changed meanwhile', async () => {
    const { dependencies, identities, enrol } = cluster();
    await enrol(ada);
    let reads = 0;
    const racing: NodeKeyStore = {
      ...identities,
      async read(name) {
        const read = await identities.read(name);
        reads += 1;
        if (reads === 1 && read !== undefined) await identities.replaceKeys(read, [], NOW_MS);
        return read;
      },
    };
    const request = { nodeName: 'n1', key: key('k2'), by: signedBy('k1'), nowMs: NOW_MS, dryRun: false };
    expect((await enrolNode({ ...dependencies, identities: racing }, request)).kind).toBe('forbidden');
    expect(reads).toBe(2);
  });
});

describe('enrolling under contention', () => {
  it.each([
    [0, [10, 20, 40, 250]],
    [1, [20, 40, 80, 500]],
  ])('waits half to the whole of a doubling pause of half a second at most (random %d)', async (fraction, expected) => {
    const pauses: number[] = [];
    const identities: Partial<NodeKeyStore> = {
      read: async () => undefined,
      async enrol(identity, { pause }) {
        for (const attempt of [1, 2, 3, 9]) await pause(attempt);
        return { kind: 'enrolled', identity: { ...identity, version: 1 } };
      },
    };
    const dependencies = {
      identities,
      random: { uuid: () => 'u', fraction: () => fraction },
      pause: async (milliseconds: number) => pauses.push(milliseconds),
    } as unknown as EnrolDependencies;
    const answer = await enrolNode(dependencies, { nodeName: 'n1', key: key('k1'), by: ada, nowMs: 0, dryRun: false });
    expect(answer.kind).toBe('created');
    expect(pauses).toEqual(expected);
  });

  it('stops after six decisions on a changed state', async () => {
    let decisions = 0;
    const identities: Partial<NodeKeyStore> = {
      read: async () => undefined,
      async enrol() {
        decisions += 1;
        if (decisions > 100) throw new Error('it does not stop');
        return { kind: 'moved' } as never;
      },
    };
    const dependencies = { identities, random: { uuid: () => 'u', fraction: () => 0 } } as unknown as EnrolDependencies;
    const answer = await enrolNode(dependencies, { nodeName: 'n1', key: key('k1'), by: ada, nowMs: 0, dryRun: false });
    expect(answer).toEqual({ kind: 'contended' });
    expect(decisions).toBe(6);
  });
});
