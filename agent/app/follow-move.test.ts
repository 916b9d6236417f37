import { beforeEach, describe, expect, it } from 'vitest';
import { type ClusterAddress, movedStatus } from '../../shared/agents/moved-cluster.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
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
let atNew: KubeAnswer;
let atOld: KubeAnswer;
let follower: MoveFollower;

beforeEach(() => {
  nowMs = 0;
  asked = [];
  remembered = [];
  restarts = 0;
  atNew = node();
  atOld = moved;
  follower = new MoveFollower({
    nodeName: 'n1',
    open: (address) => {
      asked.push(address);
      return { send: async () => atNew, reconnect: () => {} };
    },
    remember: async (address) => void remembered.push(address),
    restart: () => {
      restarts += 1;
    },
    monotonicMs: () => nowMs,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
});

/** One request, and what follows from its answer. */
async function send(): Promise<void> {
  await follower.watching({ send: async () => atOld, reconnect: () => {} }).send(GET);
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
    nowMs = 10_000;
    atNew = node();
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
