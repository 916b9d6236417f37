/**
 * Sixteen allocators at once, each with its own picture of the blocks, serve the same and different nodes on the
 * embedded engine; nodes are deleted and made anew in between. No block is ever two nodes', and in the end the store
 * holds exactly what the Nodes say.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cidrStore } from '../../functions/object-stream/cidr-store.ts';
import { cidrAllocator } from '../../functions/object-stream/node-cidrs.ts';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { randomFrom } from '../support/seeded.ts';

const ALLOCATORS = 16;
const NODES = Number(process.env['RACE_NODES'] ?? 64);
const SEED = Number(process.env['RACE_SEED'] ?? 20_261_120);
/** Redeliveries of one change before the test gives up on it. */
const DELIVERIES_MAX = 50;
/** On a machine that does other things as well. */
const TIMEOUT_MS = 180_000;
const NOW_MS = Date.UTC(2026, 0, 1);

describe('sixteen allocators of pod CIDRs', () => {
  let engine: TestEngine;
  let items: ItemStore;
  beforeAll(async () => {
    engine = await startEngine();
    items = dynamoDbItemStore({ client: engine.client, tables: engine.tables });
  });
  afterAll(async () => {
    await engine?.stop();
  });

  it(
    'never assign one block to two nodes',
    async () => {
      const fraction = randomFrom(SEED);
      const clock = { nowMs: () => NOW_MS };
      const random = { uuid: () => crypto.randomUUID(), fraction };
      const objects = clusterObjects({ items, clock, random });
      const policy = {
        ...defaultPolicy,
        // Two blocks to spare in the one, many in the other.
        clusterCIDRs: ['10.0.0.0/17', 'fd00::/48'],
        nodeCIDRMaskSizeIPv4: 24,
      };
      const nothing = () => undefined;
      const allocators = Array.from({ length: ALLOCATORS }, () =>
        cidrAllocator(
          workDependencies({
            items,
            clock,
            random,
            policy,
            log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
            meter: { add: nothing },
          }),
        ),
      );
      const any = () => allocators[Math.floor(fraction() * ALLOCATORS)]!;
      const refOf = (name: string) => ({ resource: 'nodes', namespace: '', name });
      const redelivered = async (work: () => Promise<void>): Promise<void> => {
        for (let delivery = 1; ; delivery += 1) {
          try {
            return await work();
          } catch (fault) {
            if (!(fault instanceof StoreFault && fault.retryable) || delivery === DELIVERIES_MAX) throw fault;
          }
        }
      };
      const create = async (name: string): Promise<KubeNode> => {
        const object = { apiVersion: 'v1', kind: 'Node', metadata: { name, uid: random.uuid() }, spec: {}, status: {} };
        for (;;) {
          const outcome = await objects.commit({ writes: [{ kind: 'create', ref: refOf(name), object }] });
          if (outcome.kind === 'committed') return outcome.objects[0] as KubeNode;
          if (outcome.kind !== 'contended') throw new Error(outcome.kind);
        }
      };
      const remove = async (name: string): Promise<KubeNode> => {
        for (;;) {
          const previous = (await objects.get(refOf(name)))!;
          const outcome = await objects.commit({ writes: [{ kind: 'delete', ref: refOf(name), previous }] });
          if (outcome.kind === 'committed') return previous as KubeNode;
        }
      };

      const names = Array.from({ length: NODES }, (_, index) => `n${index}`);
      const life = async (name: string): Promise<void> => {
        let node = await create(name);
        // Every change is seen by two allocators at once.
        await Promise.all([1, 2].map(() => redelivered(() => any().settle(node, NOW_MS))));
        if (fraction() < 0.5) return;
        const gone = await remove(name);
        await Promise.all([1, 2].map(() => redelivered(() => any().release(gone))));
        node = await create(name);
        await redelivered(() => any().settle(node, NOW_MS));
        await redelivered(() => any().release(gone));
      };
      let next = 0;
      const worker = async (): Promise<void> => {
        while (next < names.length) {
          next += 1;
          await life(names[next - 1]!);
        }
      };
      await Promise.all(Array.from({ length: ALLOCATORS }, worker));

      const nodes = (await objects.getMany(names.map(refOf))) as KubeNode[];
      const given = nodes.map((node) => node.spec?.podCIDRs ?? []);
      expect(given.filter((cidrs) => cidrs.length !== 2)).toEqual([]);
      expect(new Set(given.flat()).size).toBe(2 * NODES);
      for (const set of ['10.0.0.0/17#24', 'fd00::/48#64'] as const) {
        const { taken } = await cidrStore(items).read(set);
        expect(taken.map(({ uid }) => uid).sort()).toEqual(nodes.map(({ metadata }) => metadata.uid).sort());
      }
    },
    TIMEOUT_MS,
  );
});
