import { beforeEach, describe, expect, it } from 'vitest';
import { type ClusterAddress, movedStatus } from '../../shared/agents/moved-cluster.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { atNewAddress, movedText } from '../rules/moved.ts';
import { MoveFollower } from './follow-move.ts';

const ADDRESS = { endpoint: 'https://new.example', certificateAuthority: 'PEM' };
const GET = { method: 'GET', path: '/api/v1/nodes/n1' } as const;
const node = (name = 'n1', uid = 'u1'): KubeAnswer => answer(200, { kind: 'Node', metadata: { name, uid } });
const answer = (status: number, body: unknown): KubeAnswer => ({ kind: 'answered', status, body });
const moved = answer(421, movedStatus(ADDRESS));

let nowMs: number;
let asked: ClusterAddress[];
let remembered: ClusterAddress[];
let restarts: number;
let reconnects: string[];
let requests: KubeRequest[];
let diskFault: Error | undefined;
let atNew: KubeAnswer;
let atOld: KubeAnswer;
let follower: MoveFollower;

beforeEach(() => {
  nowMs = 0;
  asked = [];
  remembered = [];
  restarts = 0;
  reconnects = [];
  requests = [];
  diskFault = undefined;
  atNew = node();
  atOld = moved;
  follower = new MoveFollower({
    nodeName: 'n1',
    open: (address) => {
      asked.push(address);
      const send = async (request: KubeRequest) => {
        requests.push(request);
        return atNew;
      };
      return { send, reconnect: () => void reconnects.push('new') };
    },
    remember: async (address) => {
      if (diskFault !== undefined) throw diskFault;
      remembered.push(address);
    },
    restart: () => {
      restarts += 1;
    },
    monotonicMs: () => nowMs,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
});

const watched = () => follower.watching({ send: async () => atOld, reconnect: () => void reconnects.push('old') });

/** One request, and what follows from its answer. */
async function send(): Promise<void> {
  await watched().send(GET);
  await new Promise<void>((resolve) => setImmediate(resolve));
}

describe('a cluster that has moved', () => {
  it('is followed when the new address knows our Node', async () => {
    await send();
    expect({ asked, remembered, restarts }).toEqual({ asked: [ADDRESS], remembered: [ADDRESS], restarts: 1 });
  });

  it.each([
    ['refuses our key', answer(401, { kind: 'Status' })],
    ['does not answer', { kind: 'failed', cause: new Error('refused') } as KubeAnswer],
    ['answers everything', answer(200, '<html>')],
    ['knows another Node', node('n2')],
    ['has the Node of another cluster', node('n1', 'other')],
    ['has moved itself', moved],
  ])('is not followed to an address that %s, and is asked again after a while', async (_what, other) => {
    atOld = node();
    await send();
    atOld = moved;
    atNew = other;
    await send();
    await send();
    expect({ asked: asked.length, remembered, restarts }).toEqual({ asked: 1, remembered: [], restarts: 0 });
    nowMs = 9_999;
    atNew = node();
    await send();
    expect(asked).toHaveLength(1);
    nowMs = 10_000;
    await send();
    expect({ asked: asked.length, restarts }).toEqual({ asked: 2, restarts: 1 });
  });

  it.each([
    ['no address', answer(421, { kind: 'Status', reason: 'ClusterMoved' })],
    ['an address without TLS', answer(421, movedStatus({ endpoint: 'http://new.example' }))],
    ['another code', answer(503, movedStatus(ADDRESS))],
  ])('is not followed by an answer with %s', async (_what, other) => {
    atOld = other;
    await send();
    expect(asked).toEqual([]);
  });
});

describe('the client that the follower watches', () => {
  it('is the same for its user, and asks the new address once, with a bound', async () => {
    watched().reconnect();
    expect(reconnects).toEqual(['old']);
    expect(await watched().send(GET)).toBe(moved);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(requests).toEqual([{ method: 'GET', path: '/api/v1/nodes/n1', timeoutMs: 10_000 }]);
    expect(reconnects).toEqual(['old', 'new']);
  });

  it('without an answer is no reason to ask anywhere', async () => {
    atOld = { kind: 'failed', cause: new Error('no route') };
    await send();
    expect(asked).toEqual([]);
  });

  it('knows the uid of our Node from before other answers', async () => {
    for (const other of [node(), node('n2', 'u2'), answer(200, null), answer(200, { kind: 'Node' })]) {
      atOld = other;
      await send();
    }
    atOld = moved;
    atNew = node('n1', 'u2');
    await send();
    expect([asked.length, restarts]).toEqual([1, 0]);
  });

  it('does not follow to a Node without a uid', async () => {
    atNew = answer(200, { kind: 'Node', metadata: { name: 'n1', uid: 7 } });
    await send();
    atNew = answer(200, { kind: 'Pod', metadata: { name: 'n1', uid: 'u1' } });
    nowMs = 10_000;
    await send();
    atNew = answer(503, { kind: 'Node', metadata: { name: 'n1', uid: 'u1' } });
    nowMs = 20_000;
    await send();
    expect([asked.length, restarts]).toEqual([3, 0]);
  });

  it('is asked again after the new address could not be stored', async () => {
    diskFault = new Error('ENOSPC');
    await send();
    expect(restarts).toBe(0);
    diskFault = undefined;
    nowMs = 10_000;
    await send();
    expect([remembered, restarts]).toEqual([[ADDRESS], 1]);
  });
});

describe('the address that was remembered', () => {
  const config = { endpoint: 'https://old.example', certificateAuthority: 'OLD', nodeName: 'n1' } as AgentConfig;

  it('replaces endpoint and authorities of the configuration', () => {
    const text = movedText('https://old.example', ADDRESS);
    expect(atNewAddress(config, text)).toEqual({
      ...ADDRESS,
      nodeName: 'n1',
      configuredEndpoint: 'https://old.example',
    });
    const system = movedText('https://old.example', { endpoint: 'https://new.example' });
    expect(atNewAddress(config, system)).toEqual({
      endpoint: 'https://new.example',
      nodeName: 'n1',
      configuredEndpoint: 'https://old.example',
    });
  });

  it.each([
    ['a configuration that names another endpoint', movedText('https://older.example', ADDRESS)],
    ['no file', undefined],
    ['a damaged file', '{"from"'],
    ['an empty one', ''],
    ['null', 'null'],
  ])('changes nothing for %s', (_what, text) => {
    expect(atNewAddress(config, text)).toBe(config);
  });
});
