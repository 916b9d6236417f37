/** The agent's side of updates over the API itself, on a disk in memory. */
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { defined } from '../../../shared/defined.ts';
import { apiInMemory } from '../../../test/support/api-in-memory.ts';
import { CutDisk } from '../../../test/support/cut-disk.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { updateSource } from '../../adapters/updates/update-source.ts';
import type { KubeAnswer, KubeApi } from '../../ports/kube-api.ts';
import type { UpdateSource } from '../../ports/update-source.ts';
import { signedDowngrade, signedStatement } from '../../rules/update-check.ts';
import { InstalledVersions } from './installed-versions.ts';
import { SelfUpdate } from './self-update.ts';

const FILE = 'the new agent';
const SHA = createHash('sha256').update(FILE).digest('hex');
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const signed = (version: string, sha256 = SHA): string =>
  sign(null, Buffer.from(signedStatement({ version, sha256 })), privateKey).toString('base64');
const RELEASES = '/apis/nodekeeper.dev/v1alpha1/agentreleases';
const HOUR_MS = 3_600_000;

interface Options {
  readonly content?: string;
  readonly signature?: string;
  readonly printed?: string | Error;
  readonly sizeBytes?: number;
  /** The signature of the release, as the API stores it. */
  readonly downgradeSignature?: string;
  /** In place of that of the API. */
  readonly answer?: KubeAnswer;
}

async function cluster({ signature = signed('2.0.0'), sizeBytes, downgradeSignature }: Options = {}) {
  const api = apiInMemory({ users: { n1: { name: 'system:node:n1', groups: ['system:nodes'] } } });
  const annotations = { 'nodekeeper.dev/agent-version': '1.0.0' };
  await api.send('POST', '/api/v1/nodes', { body: { kind: 'Node', metadata: { name: 'n1', annotations } } });
  const artifact = { url: 'https://files.example/a', sha256: SHA, signature };
  const allowDowngrade = downgradeSignature !== undefined;
  const artifacts = [{ ...artifact, ...defined({ sizeBytes, downgradeSignature }) }];
  const spec = { version: '2.0.0', artifacts, allowDowngrade };
  await api.send('POST', RELEASES, { body: { kind: 'AgentRelease', metadata: { name: 'agent' }, spec } });
  const release = async () => (await api.send('GET', `${RELEASES}/agent`)).body;
  return { api, release };
}

type Cluster = Awaited<ReturnType<typeof cluster>>;

/** One process of the agent. */
function agent({ api }: Cluster, disk: CutDisk, options: Options & { readonly version?: string } = {}) {
  const { content = FILE, printed = '2.0.0', version = '1.0.0' } = options;
  const time = new SteppedTime(0);
  const stop = new AbortController();
  const events: string[] = [];
  let restarts = 0;
  let requests = 0;
  let isShuttingDown = false;
  const kube: KubeApi = {
    async send({ method, path, body }) {
      requests += 1;
      if (options.answer !== undefined) return options.answer;
      const headers = { authorization: 'Bearer n1' };
      const answer = await api.send(method, path, { body, contentType: 'application/json', headers });
      return { kind: 'answered', status: answer.code, body: answer.body };
    },
    reconnect: () => undefined,
  };
  const real = updateSource({
    directory: '/nowhere',
    publicKey,
    environment: {},
    certificateAuthority: undefined,
    apiHost: 'api.example',
  });
  const source: UpdateSource = {
    ...real,
    async *download() {
      yield Buffer.from(content);
    },
    versionOf: async () => {
      if (typeof printed === 'string') return printed;
      throw printed;
    },
  };
  const versions = new InstalledVersions(disk.files());
  const update = new SelfUpdate({
    nodeName: 'n1',
    version,
    architecture: 'amd64',
    periodMs: HOUR_MS,
    api: kube,
    versions,
    source,
    time,
    fraction: () => 0.5,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    recordEvent: ({ reason, message }) => events.push(`${reason}: ${message}`),
    isShuttingDown: () => isShuttingDown,
    restart: () => {
      restarts += 1;
    },
  });
  const running = update.run(stop.signal);
  return {
    events,
    versions,
    update,
    restarts: () => restarts,
    waits: time.waits,
    requests: () => requests,
    shutDown: (begins: boolean) => {
      isShuttingDown = begins;
    },
    pass: (ms: number) => time.pass(ms),
    async end() {
      stop.abort();
      await running;
    },
  };
}

describe('an update', () => {
  it('is downloaded, started on trial, confirmed by two heartbeats and reported', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    const before = agent(world, disk);
    await before.pass(60_000);
    expect(before.restarts()).toBe(1);
    expect((await world.release()).status.updating).toMatchObject([{ node: 'n1', sha256: SHA }]);

    const { file, trial } = await before.versions.start();
    expect([disk.contentOf(file), trial?.starts]).toEqual([FILE, 1]);
    const after = agent(world, disk, { version: '2.0.0' });
    after.update.beat();
    await after.pass(60_000);
    expect((await world.release()).status.updated).toBe(0);
    after.update.beat();
    await after.update.settled();
    await after.pass(60_000);
    expect((await world.release()).status).toMatchObject({ nodes: 1, updated: 1, updating: [], wave: 1 });
    expect(await after.versions.trial()).toBeUndefined();
    expect(after.events).toEqual(['AgentUpdated: nodekeeper-agent 2.0.0 runs.']);
    await after.end();
  });

  it('that was rolled back is reported with its reason, and not tried again', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    await agent(world, disk).pass(60_000);
    const versions = new InstalledVersions(disk.files());
    const { trial } = await versions.start();
    if (trial === undefined) throw new Error('no trial');
    await versions.rollBack(trial, 'no accepted heartbeats in 120 s');

    const after = agent(world, disk);
    await after.pass(5 * HOUR_MS);
    expect(after.restarts()).toBe(0);
    expect((await world.release()).status).toMatchObject({
      updating: [],
      failed: [{ node: 'n1', sha256: SHA, message: 'no accepted heartbeats in 120 s' }],
    });
    expect(after.events).toEqual([
      'AgentUpdateFailed: nodekeeper-agent 2.0.0 was not kept: no accepted heartbeats in 120 s. 1.0.0 runs.',
    ]);
    await after.end();
  });

  describe('after a trial without heartbeats', () => {
    /** The trial ends after 120 s, and the version before starts. Its first heartbeat is accepted, or not. */
    async function afterTrial(world: Cluster, disk: CutDisk, isReachable: boolean) {
      const installing = agent(world, disk);
      await installing.pass(60_000);
      expect(installing.restarts()).toBe(1);
      const { trial } = await installing.versions.start();
      if (trial === undefined) throw new Error('no trial');
      await installing.versions.rollBack(trial, 'no accepted heartbeats in 120 s', { isDoubtful: true });
      const before = agent(world, disk);
      if (!isReachable) before.update.missed();
      before.update.beat();
      await before.update.settled();
      return before;
    }

    it('is tried again later if the version before could not send one, either', async () => {
      const world = await cluster();
      const disk = new CutDisk();
      const before = await afterTrial(world, disk, false);
      await before.pass(60_000);
      expect(before.restarts()).toBe(0);
      expect((await world.release()).status).toMatchObject({ updating: [{ node: 'n1' }], failed: [] });
      expect(before.events).toEqual([
        'AgentUpdateDelayed: nodekeeper-agent 2.0.0 was not kept: no accepted heartbeats in 120 s, ' +
          'and 1.0.0 could not send one, either. It is tried again.',
      ]);
      await before.pass(10 * 60_000);
      expect(before.restarts()).toBe(1);
      const { file, trial } = await before.versions.start();
      expect([disk.contentOf(file), trial?.starts]).toEqual([FILE, 1]);
      const after = agent(world, disk, { version: '2.0.0' });
      after.update.beat();
      after.update.beat();
      await after.update.settled();
      await after.pass(60_000);
      expect((await world.release()).status).toMatchObject({ updated: 1, updating: [], failed: [] });
      await after.end();
    });

    it('has failed if the version before reaches the cluster at once, also after later outages', async () => {
      const world = await cluster();
      const disk = new CutDisk();
      const before = await afterTrial(world, disk, true);
      await before.pass(60_000);
      expect((await world.release()).status.failed).toMatchObject([{ node: 'n1', sha256: SHA }]);
      await before.end();
      const later = agent(world, disk);
      later.update.missed();
      await later.update.settled();
      await later.pass(5 * HOUR_MS);
      expect(later.restarts()).toBe(0);
      expect(await later.versions.failed()).toMatchObject([{ sha256: SHA }]);
      await later.end();
    });

    it('has failed after three such trials', async () => {
      const world = await cluster();
      const disk = new CutDisk();
      for (let trials = 1; trials <= 3; trials += 1) await (await afterTrial(world, disk, false)).end();
      const last = agent(world, disk);
      await last.pass(5 * HOUR_MS);
      expect(last.restarts()).toBe(0);
      expect((await world.release()).status).toMatchObject({ updating: [], failed: [{ node: 'n1', sha256: SHA }] });
      await last.end();
    });

    it('is not reported before the first heartbeat decided', async () => {
      const world = await cluster();
      const disk = new CutDisk();
      const installing = agent(world, disk);
      await installing.pass(60_000);
      for (let starts = 1; starts <= 3; starts += 1) await installing.versions.start();
      expect((await installing.versions.start()).file).toBe('');
      const before = agent(world, disk);
      await before.pass(60_000);
      expect(before.requests()).toBe(0);
      before.update.beat();
      await before.pass(60_000);
      expect((await world.release()).status.failed).toMatchObject([
        { message: '3 starts without 2 accepted heartbeats' },
      ]);
      await before.end();
    });
  });

  it('is not confirmed by heartbeats of the version before, and is installed again', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    await agent(world, disk).pass(60_000);
    // The disk is full: the start program cannot count the start, and starts the installed version.
    const before = agent(world, disk);
    before.update.beat();
    before.update.beat();
    await before.update.settled();
    expect(await before.versions.trial()).toMatchObject({ version: '2.0.0' });
    await before.pass(60_000);
    expect(before.restarts()).toBe(1);
    expect(before.events).toEqual(['AgentUpdating: Installing nodekeeper-agent 2.0.0.']);
    expect((await before.versions.start()).trial).toMatchObject({ version: '2.0.0', previous: '', starts: 1 });
  });

  it('of the current file, which no longer starts, returns to the installed version', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    const first = agent(world, disk);
    await first.pass(60_000);
    const { trial } = await first.versions.start();
    if (trial === undefined) throw new Error('no trial');
    await first.versions.confirm(trial);
    const again = agent(world, disk);
    await again.pass(60_000);
    expect(again.restarts()).toBe(1);
    for (let starts = 1; starts <= 3; starts += 1) expect((await again.versions.start()).trial?.starts).toBe(starts);
    expect(await again.versions.start()).toEqual({ file: '', trial: undefined });
    expect(await again.versions.start()).toEqual({ file: '', trial: undefined });
  });

  it('does not restart the agent while the machine shuts down', async () => {
    const { restarts, pass, shutDown } = agent(await cluster(), new CutDisk());
    shutDown(true);
    await pass(60_000);
    expect(restarts()).toBe(0);
    shutDown(false);
    await pass(10_000);
    expect(restarts()).toBe(1);
  });

  it('that failed before a newer version failed is granted once', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    const { versions, pass, end } = agent(world, disk);
    await versions.refuse({ version: '2.0.0', sha256: SHA, message: 'it does not run' });
    await versions.refuse({ version: '2.1.0', sha256: 'b'.repeat(64), message: 'it does not run' });
    await pass(60_000);
    const known = await world.release();
    expect(known.status).toMatchObject({ updating: [], failed: [{ sha256: SHA }] });
    await pass(5 * HOUR_MS);
    expect((await world.release()).metadata.resourceVersion).toBe(known.metadata.resourceVersion);
    await end();
  });

  it('after three starts without heartbeats is not started again', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    const { versions, pass } = agent(world, disk);
    await pass(60_000);
    for (let starts = 1; starts <= 3; starts += 1) expect((await versions.start()).trial?.starts).toBe(starts);
    expect(await versions.start()).toEqual({ file: '', trial: undefined });
    expect(await versions.failed()).toMatchObject([{ message: '3 starts without 2 accepted heartbeats' }]);
  });
});

describe('a downgrade', () => {
  const later = { version: '2.0.1' };
  const granted = async (downgradeSignature: string) => {
    const before = agent(await cluster({ downgradeSignature }), new CutDisk(), later);
    await before.pass(60_000);
    return before;
  };

  it('is installed if the owner of the key signed it as one', async () => {
    const statement = Buffer.from(signedDowngrade({ version: '2.0.0', sha256: SHA }));
    expect((await granted(sign(null, statement, privateKey).toString('base64'))).restarts()).toBe(1);
  });

  it('is refused with an event if it has the signature of the version alone, whatever the release allows', async () => {
    const { restarts, events, pass, end } = await granted(signed('2.0.0'));
    await pass(HOUR_MS);
    expect(restarts()).toBe(0);
    expect(new Set(events)).toEqual(
      new Set([
        'AgentUpdateDelayed: nodekeeper-agent 2.0.0 is not installed: ' +
          '2.0.0 is older than 2.0.1, and is not signed as a downgrade',
      ]),
    );
    await end();
  });

  it('after a failed trial needs no signature', async () => {
    const world = await cluster();
    const disk = new CutDisk();
    const { versions, pass } = agent(world, disk);
    await pass(60_000);
    const { trial } = await versions.start();
    if (trial === undefined) throw new Error('no trial');
    expect(await versions.rollBack(trial, 'it does not start')).toBe('');
    expect((await versions.start()).file).toBe('');
  });
});

describe('a file is not installed', () => {
  it.each<[string, Options]>([
    ['signed by another key', { signature: `${'A'.repeat(86)}==` }],
    ['signed for another version', { signature: signed('1.9.0') }],
    ['signed for another file', { signature: signed('2.0.0', 'b'.repeat(64)) }],
    ['other than the signed one', { content: 'another agent' }],
    ['of another size', { sizeBytes: 5 }],
  ])('%s, and is tried again later', async (_what, options) => {
    const world = await cluster(options);
    const disk = new CutDisk();
    const { restarts, requests, pass, end, versions } = agent(world, disk, options);
    await pass(60_000);
    expect([restarts(), requests(), disk.listed()]).toEqual([0, 1, []]);
    await pass(HOUR_MS);
    expect(requests()).toBeGreaterThan(1);
    expect(await versions.failed()).toEqual([]);
    await end();
  });

  it.each<[string | Error, string]>([
    ['1.9.0', 'it is version 1.9.0'],
    [new Error('SyntaxError'), 'it does not run: SyntaxError'],
  ])('if it does not print the version (%s), which is reported once', async (printed, message) => {
    const world = await cluster();
    const disk = new CutDisk();
    const { restarts, pass, end, requests } = agent(world, disk, { printed });
    await pass(120_000);
    expect(restarts()).toBe(0);
    expect(disk.listed()).toEqual(['failed.json']);
    expect((await world.release()).status.failed).toMatchObject([{ node: 'n1', message }]);
    expect(requests()).toBe(2);
    await end();
  });
});

it('asks once per period while there is nothing to do', async () => {
  const world = await cluster();
  const { requests, pass, end } = agent(world, new CutDisk(), { version: '2.0.0' });
  await pass(24 * HOUR_MS);
  expect(requests()).toBeGreaterThan(20);
  expect(requests()).toBeLessThan(32);
  await end();
});

describe('the next report', () => {
  const body = (action: string, over: object = {}) => ({ kind: 'NodeUpdateAnswer', action, ...over });
  it.each<[string, KubeAnswer, number]>([
    ['in the period', { kind: 'answered', status: 200, body: body('none') }, 0.875 * HOUR_MS],
    ['when the API says', { kind: 'answered', status: 200, body: body('wait', { waitSeconds: 120 }) }, 120_000],
    ['after five minutes without an answer', { kind: 'failed', cause: new Error('no route') }, 300_000],
  ])('is %s', async (_what, answer, waitMs) => {
    const { waits, pass, end } = agent(await cluster(), new CutDisk(), { answer });
    await pass(30_000);
    expect(waits).toEqual([30_000, waitMs]);
    await end();
  });

  it('is in up to ten minutes after an update that failed', async () => {
    const { waits, pass, end } = agent(await cluster(), new CutDisk(), { content: 'another agent' });
    await pass(30_000);
    // The second is that of the download.
    expect(waits).toEqual([30_000, 15 * 60_000, 450_000]);
    await end();
  });

  it('does not follow when the agent stops', async () => {
    const { requests, end } = agent(await cluster(), new CutDisk());
    await end();
    expect(requests()).toBe(0);
  });

  it('is sent although the first heartbeat could not be recorded', async () => {
    const disk = new CutDisk();
    const { update, versions, requests, pass, end } = agent(await cluster(), disk);
    versions.judge = () => Promise.reject(new Error('EIO'));
    update.beat();
    await update.settled();
    await pass(30_000);
    expect(requests()).toBe(1);
    await end();
  });
});
