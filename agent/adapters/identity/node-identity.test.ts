import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { NodePublicKey } from '../../../shared/access/node-identity.ts';
import { nodeTokens } from '../../../shared/access/node-tokens.ts';
import { answered, scriptedApi, silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import type { KubeAnswer, KubeRequest } from '../../ports/kube-api.ts';
import { type MachineKey, machineKey } from './key-file.ts';
import { createNodeIdentity } from './node-identity.ts';

const ALL = { kind: 'all' } as const;
const BEAT = { kind: 'beat' } as const;
const START_MS = Date.parse('2026-01-01T00:00:00Z');
let rootDirectory: string;

beforeEach(() => {
  rootDirectory = folderForTest();
});

/** The cluster's answer: the identity with the key of the request. */
const enrols = ({ body }: KubeRequest): KubeAnswer =>
  answered(201, {
    metadata: { name: 'edge-7' },
    spec: {
      keys: [
        { keyId: 'another', addedAt },
        { keyId: key.keyId, addedAt, publicKey: (body as { spec: { publicKey: unknown } }).spec },
      ],
      nodeLabels: { site: 'north' },
    },
  });
const addedAt = '2026-01-01T00:00:00Z';
let key: MachineKey;

async function world({
  answer = enrols,
  bootstrapToken = 'abc.secret',
}: {
  answer?: (request: KubeRequest) => KubeAnswer;
  /** '': none. */
  bootstrapToken?: string;
} = {}) {
  key = await machineKey(join(rootDirectory, 'root'));
  const clock = {
    nowMs: START_MS,
    monotonicMs: 1_000,
    pass(milliseconds: number) {
      clock.nowMs += milliseconds;
      clock.monotonicMs += milliseconds;
    },
  };
  const time = {
    nowMs: () => clock.nowMs,
    monotonicMs: () => clock.monotonicMs,
    uptimeMs: () => 7_000 + clock.monotonicMs,
  };
  const api = scriptedApi(answer);
  const config = {
    nodeName: 'edge-7',
    clusterId: 'c1',
    rootDirectory: join(rootDirectory, 'root'),
    ...(bootstrapToken === '' ? {} : { bootstrapToken }),
  };
  const start = (more: Partial<typeof config> = {}) =>
    createNodeIdentity({ ...config, ...more }, { time, log: silentLog, bootstrapApi: api });
  return { clock, api, start };
}

/** User name if the server accepts the token by its own clock; otherwise the kind of its answer. */
async function verdict(
  token: string,
  nowMs: number,
  {
    publicKey = key.publicKey,
    acceptsBeatTokens = false,
  }: { publicKey?: NodePublicKey; acceptsBeatTokens?: boolean } = {},
): Promise<string> {
  const scheme = nodeTokens({
    clusterId: 'c1',
    keysLiveMs: 60_000,
    acceptsBeatTokens,
    keys: { keysOf: async () => [{ keyId: key.keyId, publicKey, addedAtMs: 0 }] },
  });
  expect(scheme.recognises(token)).toBe(true);
  const answer = await scheme.authenticate(token, nowMs);
  return answer.kind === 'authenticated' ? answer.user.username : answer.kind;
}

describe('tokens of our own', () => {
  it('are accepted by the server, used again, and replaced a minute before they expire', async () => {
    const { clock, start } = await world();
    const identity = start();
    const first = await identity.bearer(ALL);
    expect(await verdict(first, clock.nowMs)).toBe('system:node:edge-7');
    clock.pass(239_000);
    expect(await identity.bearer(ALL)).toBe(first);
    clock.pass(2_000);
    const second = await identity.bearer(ALL);
    expect(second).not.toBe(first);
    expect(await verdict(second, clock.nowMs)).toBe('system:node:edge-7');
  });

  it.each([3_600_000, -3_600_000])(
    'are accepted although our clock is off by %s ms, from the second attempt on',
    async (aheadMs) => {
      const { clock, start } = await world();
      const serverTimeMs = clock.nowMs;
      clock.nowMs += aheadMs;
      const identity = start();
      const first = await identity.bearer(ALL);
      expect(await verdict(first, serverTimeMs)).toBe('refused');
      expect(identity.answered({ status: 401, serverTimeMs, token: first })).toBe(true);
      const second = await identity.bearer(ALL);
      expect(await verdict(second, serverTimeMs)).toBe('system:node:edge-7');
      // Another connection was refused with the first one: it was replaced since.
      expect(identity.answered({ status: 401, serverTimeMs, token: first })).toBe(true);
      expect(await identity.bearer(ALL)).toBe(second);
      expect(identity.answered({ status: 401, serverTimeMs, token: second })).toBe(false);
    },
  );

  it.each([3_600_000, -3_600_000])(
    'are accepted after our clock was set by %s ms while the agent runs',
    async (jumpMs) => {
      const { clock, start } = await world();
      const identity = start();
      const serverTimeMs = clock.nowMs;
      identity.answered({ status: 200, serverTimeMs, token: await identity.bearer(ALL) });
      await identity.bearer(ALL);
      clock.nowMs += jumpMs;
      expect(await verdict(await identity.bearer(ALL), serverTimeMs)).toBe('system:node:edge-7');
    },
  );

  it('are not signed again after a refusal that the clock does not explain', async () => {
    const { clock, start } = await world();
    const identity = start();
    const token = await identity.bearer(ALL);
    expect(identity.answered({ status: 401, serverTimeMs: clock.nowMs, token })).toBe(false);
    expect(identity.answered({ status: 401, token })).toBe(false);
    expect(identity.answered({ status: 403, serverTimeMs: clock.nowMs + 3_600_000, token })).toBe(false);
  });
});

describe('the keys of a machine', () => {
  it('are two during a rotation: the other one signs when one is refused, and none is tried twice', async () => {
    const { clock, start } = await world();
    const identity = start();
    const first = await identity.bearer(ALL);
    const next = await identity.keys!.makeNext();
    expect(identity.keys?.signingKeyId()).toBe(key.keyId);
    // A refusal of a request is none of its key.
    expect(identity.answered({ status: 403, token: first })).toBe(false);
    expect(identity.answered({ status: 401, token: first })).toBe(true);
    const second = await identity.bearer(ALL);
    expect([second === first, identity.keys?.signingKeyId()]).toEqual([false, next.keyId]);
    expect(identity.answered({ status: 401, token: second })).toBe(false);
    const third = await identity.bearer(ALL);
    expect([identity.keys?.signingKeyId(), third === second]).toEqual([key.keyId, false]);
    clock.pass(60_000);
    identity.answered({ status: 200, token: third });
    expect(identity.answered({ status: 401, token: third })).toBe(true);
    expect(identity.keys?.signingKeyId()).toBe(next.keyId);
  });

  it('that are both refused sign with the one that was accepted last', async () => {
    const { start } = await world();
    const identity = start();
    await identity.bearer(ALL);
    await identity.keys!.makeNext();
    identity.keys!.signWithNext();
    const next = identity.keys?.signingKeyId();
    expect(next).not.toBe(key.keyId);
    const accepted = await identity.bearer(ALL);
    identity.answered({ status: 200, token: accepted });
    expect(identity.answered({ status: 401, token: accepted })).toBe(true);
    const other = await identity.bearer(ALL);
    identity.answered({ status: 400, token: other });
    expect(identity.answered({ status: 401, token: other })).toBe(false);
    expect(identity.keys?.signingKeyId()).toBe(next);
  });

  it('that cannot be used, or with an enrolment that cannot be written, are a complaint', async () => {
    const { start } = await world();
    writeFileSync(join(rootDirectory, 'root', 'node-key.pem'), 'broken');
    const broken = start();
    await expect(broken.bearer(ALL)).rejects.toThrow();
    expect(broken.complaint()).toMatch(/not a private key/);
    rmSync(join(rootDirectory, 'root', 'node-key.pem'));
    const { clock, start: again } = await world();
    mkdirSync(join(rootDirectory, 'root', 'node-identity.json.new'));
    const unwritten = again();
    await unwritten.bearer(ALL);
    expect(unwritten.complaint()).toMatch(/^the identity is not written/);
    rmSync(join(rootDirectory, 'root', 'node-identity.json.new'), { recursive: true, force: true });
    clock.pass(60_000);
    await unwritten.bearer(BEAT);
    expect(unwritten.complaint()).toBeUndefined();
  });
});

describe('tokens for heartbeats', () => {
  it('are accepted where heartbeats are and nowhere else, and are used again', async () => {
    const { clock, start } = await world();
    const identity = start();
    const token = await identity.bearer(BEAT);
    expect(await identity.bearer(BEAT)).toBe(token);
    expect(await verdict(token, clock.nowMs, { acceptsBeatTokens: true })).toBe('system:node:edge-7');
    expect(await verdict(token, clock.nowMs)).toBe('refused');
    expect(await verdict(await identity.bearer(ALL), clock.nowMs)).toBe('system:node:edge-7');
  });

  it('are bound to their body for a relay, and never used again', async () => {
    const { clock, start } = await world();
    const identity = start();
    const body = Buffer.from('{}');
    const token = await identity.bearer({ kind: 'boundBeat', body });
    expect(await verdict(token, clock.nowMs, { acceptsBeatTokens: true })).toBe('system:node:edge-7');
    const { aud, body_sha256, iat, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect([aud, body_sha256, exp - iat]).toEqual([
      'c1#beat',
      createHash('sha256').update(body).digest('base64url'),
      30,
    ]);
    expect(await identity.bearer({ kind: 'boundBeat', body })).not.toBe(token);
  });

  it('are replaced by the token for all requests for ten minutes in a cluster that does not know them', async () => {
    const { clock, start } = await world();
    const identity = start();
    const all = await identity.bearer(ALL);
    const beat = await identity.bearer(BEAT);
    expect(identity.answered({ status: 401, serverTimeMs: clock.nowMs, token: beat })).toBe(true);
    expect(await identity.bearer(BEAT)).toBe(all);
    clock.pass(599_000);
    expect(await verdict(await identity.bearer(BEAT), clock.nowMs)).toBe('system:node:edge-7');
    clock.pass(1_000);
    expect(await verdict(await identity.bearer(BEAT), clock.nowMs)).toBe('refused');
  });

  // After 20 s the token is valid still: a cluster may have refused it when its own clock was set since.
  it.each([3_600_000, 20_000])('that a clock off by %s ms makes invalid are signed again', async (aheadMs) => {
    const { clock, start } = await world();
    const identity = start();
    const token = await identity.bearer(BEAT);
    const serverTimeMs = clock.nowMs + aheadMs;
    expect(identity.answered({ status: 401, serverTimeMs, token })).toBe(true);
    expect(await identity.bearer(BEAT)).not.toBe(token);
    expect(await verdict(await identity.bearer(BEAT), serverTimeMs, { acceptsBeatTokens: true })).toBe(
      'system:node:edge-7',
    );
  });
});

describe('enrolling', () => {
  it('happens once for concurrent requests, sends only the public key, and returns labels', async () => {
    const { api, start } = await world();
    const identity = start();
    await Promise.all([identity.bearer(ALL), identity.bearer(ALL), identity.nodeLabels()]);
    expect(await identity.nodeLabels()).toEqual({ site: 'north' });
    expect(api.requests).toEqual([
      {
        method: 'POST',
        path: '/apis/nodekeeper.dev/v1alpha1/nodeidentities',
        body: {
          apiVersion: 'nodekeeper.dev/v1alpha1',
          kind: 'NodeIdentity',
          metadata: { name: 'edge-7' },
          spec: { publicKey: key.publicKey },
        },
      },
    ]);
    expect(Object.keys(key.publicKey).sort()).toEqual(['crv', 'kty', 'x', 'y']);
  });

  it('is kept over a restart, without the secret', async () => {
    const { api, start } = await world();
    await start().bearer(ALL);
    const again = start();
    await again.bearer(ALL);
    expect(await again.nodeLabels()).toEqual({ site: 'north' });
    expect(api.requests).toHaveLength(1);
    expect(readFileSync(join(rootDirectory, 'root', 'node-identity.json'), 'utf8')).not.toContain('secret');
  });

  it('does not happen without a bootstrap token', async () => {
    const { api, clock, start } = await world({ bootstrapToken: '' });
    expect(await verdict(await start().bearer(ALL), clock.nowMs)).toBe('system:node:edge-7');
    expect(api.requests).toEqual([]);
  });
});

describe('a configured token', () => {
  it('is sent unchanged, and no key is created', async () => {
    const identity = createNodeIdentity(
      { nodeName: 'n', clusterId: 'c', rootDirectory: join(rootDirectory, 'none'), token: 'given' },
      { time: { nowMs: () => START_MS, monotonicMs: () => 0, uptimeMs: () => 0 }, log: silentLog },
    );
    expect(await identity.bearer(ALL)).toBe('given');
    expect(identity.answered({ status: 401, token: 'given' })).toBe(false);
    expect(await identity.nodeLabels()).toEqual({});
    expect(existsSync(join(rootDirectory, 'none'))).toBe(false);
  });
});
