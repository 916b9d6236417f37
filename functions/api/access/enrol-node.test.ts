import { describe, expect, it } from 'vitest';
import type { NodeKeyStore } from '../../../shared/access/node-key-store.ts';
import { IDENTITIES, IdentityCluster } from '../../../test/support/identity-cluster.ts';
import { nodeKeyPair } from '../../../test/support/node-key-pair.ts';
import { type EnrolDependencies, enrolNode } from './enrol-node.ts';

const KEY = { kind: 'valid', keyId: 'k1', publicKey: 'public' } as never;

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
    const by = { kind: 'user', name: 'ada' } as const;
    const answer = await enrolNode(dependencies, { nodeName: 'n1', key: KEY, by, nowMs: 0, dryRun: false });
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
    const by = { kind: 'user', name: 'ada' } as const;
    const answer = await enrolNode(dependencies, { nodeName: 'n1', key: KEY, by, nowMs: 0, dryRun: false });
    expect(answer).toEqual({ kind: 'contended' });
    expect(decisions).toBe(6);
  });
});

it('an enrolment of more than 16 KiB is refused by its size', async () => {
  const cluster = new IdentityCluster();
  const { keyId } = nodeKeyPair('ES256');
  const body = { metadata: { name: 'n1', annotations: { filling: 'x'.repeat(16_384) } }, spec: { keyId } };
  expect(await cluster.asAdmin('POST', IDENTITIES, body)).toMatchObject({
    code: 413,
    body: { reason: 'RequestEntityTooLarge' },
  });
});
