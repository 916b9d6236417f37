import { beforeEach, describe, expect, it } from 'vitest';
import { nodeTokens } from '../../shared/access/node-tokens.ts';
import type { ProcessKey } from '../../shared/access/process-key.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import { nodeKeyPair, nodeToken } from '../../test/support/node-key-pair.ts';
import { probeTokens } from './probes.ts';

const START_MS = Date.UTC(2026, 0, 1);
const KEYS_LIVE_MS = 300_000;
const DAY_MS = 86_400_000;

let stored: ProcessKey[];
let reads: string[];
let nowMs: number;
let scheme: ReturnType<typeof nodeTokens>;
const node = nodeKeyPair('EdDSA');

beforeEach(() => {
  stored = [];
  reads = [];
  nowMs = START_MS;
  scheme = nodeTokens({
    clusterId: 'here',
    keysLiveMs: KEYS_LIVE_MS,
    keys: {
      keysOf: async (nodeName) =>
        nodeName === 'n1' ? [{ keyId: node.keyId, publicKey: node.publicKey, addedAtMs: START_MS }] : [],
    },
    probeKeys: {
      async probeKeys({ consistent }) {
        reads.push(consistent ? 'consistent' : 'eventual');
        return stored;
      },
    },
  });
});

/** node-monitor in another process. */
const monitor = (clusterId = 'here') =>
  probeTokens({ keys: processKeys(async (key) => void stored.push(key)), clusterId });
const outcomeOf = async (token: string): Promise<string> => {
  const answer = await scheme.authenticate(token, nowMs);
  if (answer.kind === 'authenticated') return answer.user.username;
  return answer.kind === 'refused' ? answer.reason : answer.kind;
};

describe('a probe', () => {
  it('is authenticated as the probe, not as a node', async () => {
    expect(await scheme.authenticate(await monitor().bearer(nowMs), nowMs)).toEqual({
      kind: 'authenticated',
      user: { username: 'system:nodekeeper:probe', groups: ['nodekeeper:probes', 'system:authenticated'] },
    });
  });

  it('costs no further read, and uses a token for four minutes', async () => {
    const probe = monitor();
    const tokens = new Set<string>();
    for (let tick = 0; tick < 48; tick += 1) {
      const token = await probe.bearer(nowMs);
      tokens.add(token);
      expect(await outcomeOf(token)).toBe('system:nodekeeper:probe');
      nowMs += 5_000;
    }
    expect([tokens.size, stored.length, reads]).toEqual([1, 1, ['eventual']]);
    tokens.add(await probe.bearer(nowMs));
    expect([tokens.size, stored.length]).toEqual([2, 1]);
  });

  it('of another process is accepted at the same time', async () => {
    const [one, another] = [monitor(), monitor()];
    expect(await outcomeOf(await one.bearer(nowMs))).toBe('system:nodekeeper:probe');
    expect(await outcomeOf(await another.bearer(nowMs))).toBe('system:nodekeeper:probe');
    expect(await outcomeOf(await one.bearer(nowMs))).toBe('system:nodekeeper:probe');
    expect(stored).toHaveLength(2);
  });

  it('creates another key when a key in use for a minute is refused', async () => {
    const probe = monitor();
    const removed = await probe.bearer(nowMs);
    stored.length = 0;
    nowMs += 59_999;
    probe.refused(removed, nowMs);
    expect(await probe.bearer(nowMs)).toBe(removed);
    nowMs += 1;
    probe.refused('of an earlier request', nowMs);
    expect(await probe.bearer(nowMs)).toBe(removed);
    probe.refused(removed, nowMs);
    expect(await outcomeOf(await probe.bearer(nowMs))).toBe('system:nodekeeper:probe');
    expect(stored).toHaveLength(1);
  });

  it('signs a new token after the clock was set back', async () => {
    const probe = monitor();
    await probe.bearer(nowMs);
    nowMs -= 3_600_000;
    expect(await outcomeOf(await probe.bearer(nowMs))).toBe('system:nodekeeper:probe');
    expect(stored).toHaveLength(1);
  });

  it('is refused with an expired key, cached or not', async () => {
    const probe = monitor();
    await probe.bearer(nowMs);
    stored = stored.map((key) => ({ ...key, throughMs: START_MS + 1_000 }));
    const token = await probe.bearer(nowMs);
    nowMs += 1_000;
    expect(await outcomeOf(token)).toBe('system:nodekeeper:probe');
    nowMs += 1;
    expect(await outcomeOf(token)).toBe('node token: no such key');
    nowMs += DAY_MS;
    expect(await outcomeOf(token)).toBe('node token: expired');
  });

  it('with invented key ids costs one read in five seconds', async () => {
    await outcomeOf(await monitor().bearer(nowMs));
    const probe = (pair = nodeKeyPair('EdDSA')) => nodeToken(pair, { ...asProbe, nowMs });
    for (let attempt = 0; attempt < 5; attempt += 1) expect(await outcomeOf(probe())).toBe('node token: no such key');
    expect(reads).toEqual(['eventual', 'consistent']);
  });

  const asProbe = {
    nodeName: 'any',
    clusterId: 'here',
    claims: { iss: 'system:nodekeeper:probe', sub: 'system:nodekeeper:probe' },
  };

  it.each<[string, () => string]>([
    ["signed by a node's key", () => nodeToken(node, { ...asProbe, nowMs })],
    [
      "signed by a node's key under the probe's key id",
      () => nodeToken(node, { ...asProbe, nowMs, header: { kid: stored[0]!.keyId } }),
    ],
    [
      "of a node under the probe's key id",
      () => nodeToken(node, { nodeName: 'n1', clusterId: 'here', nowMs, header: { kid: stored[0]!.keyId } }),
    ],
    [
      'of a node with the name of its Lease',
      () => nodeToken(node, { nodeName: 'nodekeeper-probe', clusterId: 'here', nowMs }),
    ],
    [
      'with claims of a node and of the probe',
      () => nodeToken(node, { nodeName: 'n1', clusterId: 'here', nowMs, claims: { sub: 'system:nodekeeper:probe' } }),
    ],
  ])('%s is refused', async (_, forged) => {
    await outcomeOf(await monitor().bearer(nowMs));
    expect((await scheme.authenticate(forged(), nowMs)).kind).toBe('refused');
  });

  it('is refused in another cluster, and where probe tokens are not accepted', async () => {
    expect(await outcomeOf(await monitor('there').bearer(nowMs))).toBe('node token: for another audience');
    const closed = nodeTokens({ clusterId: 'here', keysLiveMs: KEYS_LIVE_MS, keys: { keysOf: async () => [] } });
    expect((await closed.authenticate(await monitor().bearer(nowMs), nowMs)).kind).toBe('refused');
  });
});
