/**
 * The agent replaces its key against the API and the heartbeat as deployed, and is ended at every point of it at which
 * something outside of its process changes: by kill -9, which leaves the disk as it is, and by a power cut, which
 * leaves of it what was synchronised.
 */
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createNodeIdentity, type NodeIdentity } from '../../agent/adapters/identity/node-identity.ts';
import { createKeyRotation } from '../../agent/app/key-rotation.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../agent/ports/kube-api.ts';
import { silentLog, silentMeter } from '../support/agent-api.ts';
import { IDENTITIES, IdentityCluster, leaseBody, NODE_LEASES, TOKENS } from '../support/identity-cluster.ts';
import { SteppedTime, settle } from '../support/stepped-time.ts';

const NODE = 'edge-7';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PERIOD = 30 * DAY;

/** What the machine's disk does, and what of it would outlast a power cut. */
const disk = vi.hoisted(() => ({
  /** Asked before each operation; never resolves for a process that is dead. */
  before: async (_what: string): Promise<void> => {},
  opened: new Map<number, string>(),
  synced: new Set<number>(),
  durable: new Map<string, string>(),
}));

// Every call resolves at once: the test waits for virtual time only.
vi.mock('../../agent/adapters/system/files.ts', async (importOriginal) => {
  const real = await importOriginal<typeof import('../../agent/adapters/system/files.ts')>();
  const wrapped = Object.keys(real).map((name) => [
    name,
    async (...given: never[]) => {
      await disk.before(name);
      const act = fs[`${name}Sync` as 'openSync'] as (...given: never[]) => unknown;
      const result = act(...given);
      if (name === 'open') disk.opened.set(result as number, String(given[0]));
      if (name === 'fsync') synced(given[0] as unknown as number);
      return result;
    },
  ]);
  return Object.fromEntries(wrapped) as typeof real;
});
vi.mock('node:crypto', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:crypto')>();
  const atOnce = async (type: 'ec', options: { namedCurve: string }) => real.generateKeyPairSync(type, options);
  return { ...real, generateKeyPair: Object.assign(() => {}, { [promisify.custom]: atOnce }) };
});

/** A synced file keeps its text, also after a rename. A synced directory keeps its names. */
function synced(descriptor: number): void {
  const path = disk.opened.get(descriptor) ?? '';
  disk.synced.add(fs.statSync(path).ino);
  if (!fs.statSync(path).isDirectory()) return;
  disk.durable.clear();
  for (const name of fs.readdirSync(path)) {
    const file = join(path, name);
    disk.durable.set(name, disk.synced.has(fs.statSync(file).ino) ? fs.readFileSync(file, 'utf8') : '');
  }
}

function cutPower(directory: string): void {
  for (const name of fs.readdirSync(directory)) fs.rmSync(join(directory, name));
  for (const [name, text] of disk.durable) fs.writeFileSync(join(directory, name), text, { mode: 0o600 });
}

let cluster: IdentityCluster;
let time: SteppedTime;
let root: string;
let bootstrapToken: string;
const stops: AbortController[] = [];

beforeEach(async () => {
  cluster = new IdentityCluster();
  time = new SteppedTime(cluster.nowMs);
  root = fs.mkdtempSync(join(tmpdir(), 'nodekeeper-rotation-'));
  disk.before = async () => {};
  bootstrapToken = await cluster.bootstrapToken({ nodeLabels: { site: 'north' } });
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
  fs.rmSync(root, { recursive: true });
  expect(cluster.takeFaults()).toEqual([]);
});

interface Process {
  readonly identity: NodeIdentity;
  /** The times of beats, newest last. */
  readonly beats: number[];
  /** What was said at level warn. */
  readonly warnings: unknown[];
  /** Method and path of each request, token and all repeats included. */
  readonly requests: string[];
  beat(): Promise<number>;
  /** Beats and replaces the key, until stopped. */
  run(): void;
  stop(): void;
}

interface ProcessOptions {
  /** The error of the machine's clock. Milliseconds. */
  readonly aheadMs?: () => number;
  readonly periodMs?: number;
  readonly beatEveryMs?: number;
  /** Stands before the cluster; undefined lets a request through. */
  readonly instead?: (request: KubeRequest) => KubeAnswer | undefined;
  readonly before?: (what: string) => Promise<void>;
}

function process(options: ProcessOptions = {}): Process {
  const { before = async () => {}, aheadMs = () => 0 } = options;
  // This world's, though another may be made meanwhile.
  const [at, now] = [cluster, time];
  const stop = new AbortController();
  stops.push(stop);
  const requests: string[] = [];
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (message: string, fields?: object) => warnings.push({ message, ...fields }) };
  const clock = {
    nowMs: () => now.nowMs() + aheadMs(),
    monotonicMs: () => now.monotonicMs(),
    uptimeMs: () => now.uptimeMs(),
    sleep: now.sleep.bind(now),
  };
  /** One request, as agent/adapters/http/kube-api.ts sends it. */
  const send = async (request: KubeRequest, token: string): Promise<KubeAnswer> => {
    requests.push(`${request.method} ${request.path}`);
    const stubbed = options.instead?.(request);
    if (stubbed !== undefined) return stubbed;
    await before(`${request.method} leaves`);
    at.nowMs = now.nowMs();
    const answer = await at.send(request.method, request.path, token, request.body);
    await before(`the answer to ${request.method} arrives`);
    return { kind: 'answered', status: answer.code, body: answer.body };
  };
  const identity = createNodeIdentity(
    { nodeName: NODE, clusterId: 'here', rootDirectory: root, bootstrapToken },
    { time: clock, log, bootstrapApi: { send: (request) => send(request, bootstrapToken), reconnect() {} } },
  );
  const api: KubeApi = {
    async send(request) {
      for (let attempt = 1; ; attempt += 1) {
        const token = await identity.bearer({ kind: 'all' });
        const answer = await send(request, token);
        if (answer.kind === 'failed') return answer;
        const again = identity.answered({ status: answer.status, serverTimeMs: now.nowMs(), token });
        if (!again || attempt === 2) return answer;
      }
    },
    reconnect() {},
  };
  const rotation = createKeyRotation(
    { nodeName: NODE, keyRotationPeriodMs: options.periodMs ?? PERIOD },
    { keys: identity.keys!, api, time: clock, fraction: () => 0, log, meter: silentMeter },
  );
  const beats: number[] = [];
  const beat = async (): Promise<number> => {
    const signedBy = identity.keys?.signingKeyId();
    const body = { spec: { leaseDurationSeconds: 40 } };
    const answer = await api.send({ method: 'PATCH', path: `${NODE_LEASES}/${NODE}`, body });
    const status = answer.kind === 'answered' ? answer.status : 0;
    beats.push(status);
    rotation.beatAnswered(status === 200 && identity.keys?.signingKeyId() === signedBy ? signedBy : undefined);
    return status;
  };
  const beatOn = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await beat();
      await clock.sleep(options.beatEveryMs ?? 10_000, stop.signal);
    }
  };
  return {
    identity,
    beats,
    warnings,
    requests,
    beat,
    run() {
      void rotation.run(stop.signal);
      void beatOn();
    },
    stop: () => stop.abort(),
  };
}

/** Enrolled, with a Node and a Lease; a day later than the key may be old. */
async function enrolled(): Promise<string> {
  const first = process();
  const token = await first.identity.bearer({ kind: 'all' });
  cluster.nowMs = time.nowMs();
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } };
  expect((await cluster.send('POST', '/api/v1/nodes', token, node)).code).toBe(201);
  expect((await cluster.send('POST', NODE_LEASES, token, leaseBody(NODE))).code).toBe(201);
  expect(await first.beat()).toBe(200);
  // It is never accepted again.
  expect((await cluster.asAdmin('DELETE', `${TOKENS}/${bootstrapToken.split('.')[0]}`)).code).toBe(200);
  await time.pass(PERIOD + DAY);
  return (await keyIds())[0]!;
}

const keyIds = async (): Promise<string[]> =>
  (await cluster.asAdmin('GET', `${IDENTITIES}/${NODE}`)).body.spec.keys.map(({ keyId }: { keyId: string }) => keyId);

/** Lets time pass, and what is asked of disk and cluster come to its end, until it is so. */
async function until(holds: () => boolean | Promise<boolean>, virtualMsMax = 600_000, stepMs = 500): Promise<boolean> {
  for (let passedMs = 0; passedMs < virtualMsMax; passedMs += stepMs) {
    for (let turn = 0; turn < 10; turn += 1) await settle();
    if (await holds()) return true;
    await time.pass(stepMs);
  }
  return false;
}

const filesOf = (): string[] => fs.readdirSync(root).sort();
const enrolmentKeyId = (): string => JSON.parse(fs.readFileSync(join(root, 'node-identity.json'), 'utf8')).keyId;

const replaced = (old: string) => async (): Promise<boolean> => {
  const ids = await keyIds();
  return ids.length === 1 && ids[0] !== old;
};

describe('an agent with an old key', () => {
  it('replaces it without missing a beat, for three requests, and is then quiet', async () => {
    const old = await enrolled();
    const agent = process();
    agent.run();
    expect(await until(replaced(old))).toBe(true);
    const [fresh] = await keyIds();
    expect(filesOf()).toEqual(['node-identity.json', 'node-key.pem']);
    expect(fs.statSync(join(root, 'node-key.pem')).mode & 0o777).toBe(0o600);
    expect(enrolmentKeyId()).toBe(fresh);
    await time.pass(HOUR);
    expect(new Set(agent.beats)).toEqual(new Set([200]));
    const others = agent.requests.filter((each) => !each.includes('/leases/'));
    expect(others).toEqual([`GET ${IDENTITIES}/${NODE}`, `POST ${IDENTITIES}`, `POST ${IDENTITIES}`]);
    expect(agent.warnings).toEqual([]);
    agent.stop();
    // The next agent signs with it, and the labels of the enrolment are still known.
    const next = process();
    expect(await next.beat()).toBe(200);
    expect(next.identity.keys?.signingKeyId()).toBe(fresh);
    expect(await next.identity.nodeLabels()).toEqual({ site: 'north' });
  });

  it('replaces it again when the new key is old', async () => {
    const old = await enrolled();
    const agent = process({ beatEveryMs: HOUR });
    agent.run();
    expect(await until(replaced(old), DAY, HOUR)).toBe(true);
    const [second] = await keyIds();
    await time.pass(0.79 * PERIOD);
    expect(await keyIds()).toEqual([second]);
    await time.pass(0.21 * PERIOD + DAY);
    expect(await until(replaced(second!), DAY, HOUR)).toBe(true);
    expect(new Set(agent.beats)).toEqual(new Set([200]));
  });

  it('does not replace it when rotation is off', async () => {
    const old = await enrolled();
    const agent = process({ periodMs: 0 });
    agent.run();
    expect(await until(() => agent.beats.length > 20)).toBe(true);
    expect(await keyIds()).toEqual([old]);
    expect(agent.requests.every((each) => each.includes('/leases/'))).toBe(true);
  });

  it.each([365 * DAY, -365 * DAY])(
    'by the time of the server, although its own clock is set by %s ms',
    async (aheadMs) => {
      const old = await enrolled();
      let stepMs = 0;
      const agent = process({ beatEveryMs: HOUR, aheadMs: () => stepMs });
      agent.run();
      expect(await until(replaced(old), DAY, HOUR)).toBe(true);
      const [second] = await keyIds();
      stepMs = aheadMs;
      await time.pass(0.79 * PERIOD);
      expect(await keyIds()).toEqual([second]);
      await time.pass(0.21 * PERIOD + DAY);
      expect(await until(replaced(second!), DAY, HOUR)).toBe(true);
      expect(new Set(agent.beats)).toEqual(new Set([200]));
    },
  );
});

describe('a rotation that is refused', () => {
  const refusals: [string, KubeAnswer][] = [
    ['forbidden', { kind: 'answered', status: 403, body: { kind: 'Status', metadata: {}, message: 'no' } }],
    ['without an answer', { kind: 'failed', cause: new Error('no answer') }],
    ['answered with other keys', { kind: 'answered', status: 200, body: { metadata: {}, spec: { keys: [] } } }],
  ];

  it.each(refusals)('(%s) changes nothing, is logged once, and is retried', async (_what, answer) => {
    const old = await enrolled();
    let refuses = true;
    const agent = process({ instead: ({ method }) => (refuses && method === 'POST' ? answer : undefined) });
    agent.run();
    await until(() => false, HOUR);
    const posts = agent.requests.filter((each) => each.startsWith('POST'));
    expect(posts.length).toBeGreaterThan(2);
    expect(posts.length).toBeLessThan(10);
    expect(agent.warnings).toEqual([
      expect.objectContaining({ message: expect.stringContaining('cannot be replaced') }),
    ]);
    expect(agent.identity.keys?.signingKeyId()).toBe(old);
    expect(await keyIds()).toEqual([old]);
    expect(new Set(agent.beats)).toEqual(new Set([200]));
    refuses = false;
    expect(await until(replaced(old), 2 * HOUR)).toBe(true);
  });

  it('by the heartbeat alone leaves both keys, and the old one signs', async () => {
    const old = await enrolled();
    const refused: KubeAnswer = { kind: 'answered', status: 401, body: { kind: 'Status', metadata: {} } };
    let refuses = true;
    let agent: Process | undefined;
    agent = process({
      instead: ({ path }) =>
        refuses && path.includes('/leases/') && agent?.identity.keys?.signingKeyId() !== old ? refused : undefined,
    });
    agent.run();
    await until(() => false, 900_000);
    expect(await keyIds()).toEqual([old, expect.any(String)]);
    expect(filesOf()).toEqual(['node-identity.json', 'node-key.next.pem', 'node-key.pem']);
    // Each refused beat was repeated with the old key.
    expect(new Set(agent.beats)).toEqual(new Set([200]));
    refuses = false;
    expect(await until(replaced(old), 2 * HOUR)).toBe(true);
  });

  it('for want of a disk that can be written changes nothing', async () => {
    const old = await enrolled();
    const before = filesOf();
    disk.before = async (what) => {
      if (what === 'writeFile' || what === 'rename') throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    const agent = process();
    agent.run();
    await until(() => agent.warnings.length > 0);
    await until(() => false, 300_000);
    expect(agent.warnings).toHaveLength(1);
    expect(filesOf()).toEqual(before);
    expect(await keyIds()).toEqual([old]);
  });

  it('by a disk that cannot say that the new name will last is ended all the same', async () => {
    const old = await enrolled();
    const done: string[] = [];
    disk.before = async (what) => {
      done.push(what);
      // It is that of the directory, after the enrolment and then the key were renamed.
      if (what === 'fsync' && done.filter((each) => each === 'rename').length === 2) throw new Error('EIO');
    };
    const agent = process();
    agent.run();
    expect(await until(replaced(old))).toBe(true);
    expect(agent.warnings).toHaveLength(1);
    expect(new Set(agent.beats)).toEqual(new Set([200]));
  });

  it('by a cluster that lost the new key enrols it again', async () => {
    const old = await enrolled();
    let isLost = false;
    const refused: KubeAnswer = { kind: 'answered', status: 401, body: { kind: 'Status', metadata: {} } };
    let agent: Process | undefined;
    agent = process({
      instead: ({ path }) =>
        !isLost && path.includes('/leases/') && agent?.identity.keys?.signingKeyId() !== old ? refused : undefined,
    });
    agent.run();
    expect(await until(async () => (await keyIds()).length === 2 && agent.warnings.length > 0)).toBe(true);
    const { current } = await agent.identity.keys!.held();
    expect(current.keyId).toBe(old);
    await cluster.enrol(await agent.identity.bearer({ kind: 'all' }), NODE, current as never);
    expect(await keyIds()).toEqual([old]);
    isLost = true;
    // Longer than a function may remember the lost one.
    await time.pass(HOUR);
    expect(await until(replaced(old), 2 * HOUR)).toBe(true);
    expect(new Set(agent.beats)).toEqual(new Set([200]));
  });
});

describe('of two agents on one disk', () => {
  it('neither drops the key that the other is about to adopt', async () => {
    const old = await enrolled();
    // It knows the old key, and of no other yet; nor would it replace one for long.
    const second = process({ periodMs: 10 * PERIOD });
    expect(await second.beat()).toBe(200);
    let isSlow = true;
    const answers: (() => void)[] = [];
    const first = process({
      before: async (what) => {
        if (isSlow && what === 'the answer to PATCH arrives') await new Promise<void>((arrive) => answers.push(arrive));
      },
    });
    first.run();
    expect(await until(async () => (await keyIds()).length === 2)).toBe(true);
    second.run();
    await until(() => second.requests.some((each) => each.startsWith('POST')), 60_000);
    isSlow = false;
    for (const arrive of answers) arrive();
    await until(() => false, 2 * HOUR);
    const [fresh, ...others] = await keyIds();
    expect(others).toEqual([]);
    expect(fresh).not.toBe(old);
    expect(enrolmentKeyId()).toBe(fresh);
    for (const each of [first, second]) each.stop();
    const last = process();
    expect(await last.beat()).toBe(200);
    expect(last.requests).toHaveLength(1);
    expect(new Set([...first.beats, ...second.beats])).toEqual(new Set([200]));
  });

  it('the one that replaces nothing continues with the key of the other', async () => {
    const old = await enrolled();
    const follower = process({ periodMs: 0 });
    follower.run();
    const agent = process();
    agent.run();
    expect(await until(replaced(old))).toBe(true);
    await time.pass(HOUR);
    expect(follower.beats.filter((status) => status !== 200).length).toBeLessThanOrEqual(1);
    expect(follower.beats.at(-1)).toBe(200);
    expect(follower.identity.keys?.signingKeyId()).toBe((await keyIds())[0]);
  });
});

describe('an agent with a disk that lost the replacement', () => {
  it('signs with the key that counts, and puts it in its place again', async () => {
    const old = await enrolled();
    const [current, next] = [join(root, 'node-key.pem'), join(root, 'node-key.next.pem')];
    const oldText = fs.readFileSync(current, 'utf8');
    const first = process();
    first.run();
    expect(await until(replaced(old))).toBe(true);
    first.stop();
    const [fresh] = await keyIds();
    // Longer than a function may remember the old one.
    await time.pass(HOUR);
    fs.renameSync(current, next);
    fs.writeFileSync(current, oldText, { mode: 0o600 });
    const agent = process();
    expect(await agent.beat()).toBe(200);
    expect(agent.identity.keys?.signingKeyId()).toBe(fresh);
    agent.run();
    expect(await until(() => !fs.existsSync(next))).toBe(true);
    expect(await keyIds()).toEqual([fresh]);
    expect(new Set(agent.beats)).toEqual(new Set([200]));
    expect(agent.warnings).toEqual([expect.objectContaining({ refusedKeyId: old })]);
  });

  it('tries each key once a minute, not with every request, when neither counts any more', async () => {
    await enrolled();
    await process({ periodMs: 0 }).identity.keys?.makeNext();
    await cluster.asAdmin('DELETE', `${IDENTITIES}/${NODE}`);
    const agent = process({ periodMs: 0 });
    agent.run();
    await until(() => false, 300_000);
    expect(new Set(agent.beats)).toEqual(new Set([401]));
    expect(agent.beats.length).toBeGreaterThan(25);
    expect(agent.requests.length - agent.beats.length).toBeLessThanOrEqual(6);
  });
});

describe('an agent that is stopped while it replaces its key', () => {
  /** Ends the process at its nth operation from here on, or never; says what that would have been. */
  function mortal(endsAt: number): { agent: Process; passed: string[]; dead(): boolean } {
    const passed: string[] = [];
    let dead = false;
    const before = async (what: string): Promise<void> => {
      if (!dead && passed.length === endsAt) dead = true;
      if (dead) await new Promise(() => {});
      passed.push(what);
    };
    disk.before = before;
    return { agent: process({ before }), passed, dead: () => dead };
  }

  async function passes(): Promise<string[]> {
    const old = await enrolled();
    const { agent, passed } = mortal(Number.POSITIVE_INFINITY);
    agent.run();
    expect(await until(replaced(old))).toBe(true);
    agent.stop();
    return passed;
  }

  const ends: [string, () => void][] = [
    ['kill -9', () => {}],
    ['a power cut', () => cutPower(root)],
  ];

  it.each(ends)(
    'by %s, at any step, starts with a valid key and finishes the rotation',
    async (_how, end) => {
      const points = (await passes()).length;
      expect(points).toBeGreaterThan(20);
      for (let endsAt = 0; endsAt < points; endsAt += 1) {
        cluster = new IdentityCluster();
        time = new SteppedTime(cluster.nowMs);
        fs.rmSync(root, { recursive: true });
        fs.mkdirSync(root);
        disk.before = async () => {};
        bootstrapToken = await cluster.bootstrapToken({ nodeLabels: { site: 'north' } });
        const old = await enrolled();
        const { agent, passed, dead } = mortal(endsAt);
        agent.run();
        await until(dead, 60_000);
        agent.stop();
        end();
        const where = `${endsAt} of ${points}, after ${passed.slice(-2).join(', ')}`;
        disk.before = async () => {};
        const next = process();
        expect(await next.beat(), where).toBe(200);
        next.run();
        expect(await until(replaced(old)), where).toBe(true);
        await until(() => !fs.existsSync(join(root, 'node-key.next.pem')));
        expect(new Set(next.beats), where).toEqual(new Set([200]));
        expect(enrolmentKeyId(), where).toBe((await keyIds())[0]);
        // No use of the bootstrap token but the first.
        expect(next.requests.filter((each) => each.startsWith('POST')).length, where).toBeLessThanOrEqual(2);
        next.stop();
        const last = process();
        expect(await last.beat(), where).toBe(200);
        expect(last.requests, where).toHaveLength(1);
        expect(
          filesOf().filter((name) => !name.endsWith('.new')),
          where,
        ).toEqual(['node-identity.json', 'node-key.pem']);
      }
    },
    120_000,
  );
});
