/**
 * Assigns pod CIDRs to nodes: one block of each cluster CIDR, written in one transaction with the Node.
 *
 * The sets in memory are a cache of the store and only choose a block. The condition on the item of each block decides.
 * So any number of processes may allocate at once: the second to claim a block is refused, marks it as used, and tries
 * the next one. A node that gets no block is retried at its next change, at the latest with its next status report.
 *
 * When a cluster CIDR is new, the CIDRs of existing nodes are recorded before the first block is assigned.
 */
import { defined } from '../../shared/defined.ts';
import type { EventText } from '../../shared/events/event-text.ts';
import { recordEvents, subjectOf } from '../../shared/events/record-event.ts';
import { formatCidr } from '../../shared/fleet/cidrs/cidr.ts';
import {
  type BlockRange,
  type CidrSet,
  isUsed,
  occupyBlocks,
  releaseBlocks,
  usageOf,
} from '../../shared/fleet/cidrs/cidr-set.ts';
import { blocksOfNode, type CidrFault, createCidrSets } from '../../shared/fleet/cidrs/cluster-cidrs.ts';
import { changeNode, type NodeChangeOutcome, nodeRef } from '../../shared/fleet/nodes/change-node.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { type CidrSetKey, type CidrStore, cidrStore, takeBlockWrite } from './cidr-store.ts';
import * as metric from './metrics.ts';
import { allocateForNode, nodeEvent, occupyNode, podCidrTaken } from './node-cidrs.rule.ts';

/** Blocks tried for one node in a row; each one was claimed by another process. */
const TRIES_MAX = 64;
/** Refusals after which the cache is read again. */
const REFUSALS_PER_READ = 8;
const LIST_PAGE = 500;
/** Pages of nodes to count, at most, when a cluster CIDR is new. */
const LIST_PAGES_MAX = 2_000;

export interface CidrAllocator {
  /** For a Node that exists: records its CIDRs, or assigns some. */
  settle(node: KubeNode, nowMs: number): Promise<void>;
  /** For a deleted Node: frees its blocks. */
  release(node: KubeNode): Promise<void>;
}

const OFF: CidrAllocator = { settle: () => Promise.resolve(), release: () => Promise.resolve() };

const setKey = (set: CidrSet): CidrSetKey => `${formatCidr(set.cluster)}#${set.nodePrefix}`;
const cidrsOf = (node: KubeNode) => ({
  nodeName: node.metadata.name ?? '',
  podCIDRs: node.spec?.podCIDRs ?? [],
});

/**
 * @throws RangeError when the policy's CIDRs are invalid; parsePolicy refuses such a policy with the name of the field.
 */
export function cidrAllocator(dependencies: WorkDependencies): CidrAllocator {
  const creation = createCidrSets(dependencies.policy);
  if (creation.kind === 'off') return OFF;
  if (creation.kind === 'refused') throw new RangeError(creation.reasons.join('; '));
  return new Allocator(dependencies, creation.sets);
}

class Allocator implements CidrAllocator {
  readonly #dependencies: WorkDependencies;
  readonly #store: CidrStore;
  /** The configured sets, with only the service ranges in use. */
  readonly #fresh: readonly CidrSet[];
  #sets: Promise<readonly CidrSet[]> | undefined;
  /** Serialises the nodes: concurrent allocations in one process would choose the same block. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(dependencies: WorkDependencies, fresh: readonly CidrSet[]) {
    this.#dependencies = dependencies;
    this.#store = cidrStore(dependencies.items);
    this.#fresh = fresh;
  }

  settle(node: KubeNode, nowMs: number): Promise<void> {
    return this.#inTurn(async () => {
      const { podCIDRs } = cidrsOf(node);
      if (podCIDRs.length === 0) return this.#allocate(node, nowMs);
      const faults = await this.#occupy(node);
      // A repeated record may be about a Node that was deleted since. No later call would free its blocks.
      if (!(await this.#exists(node))) return this.#release(node);
      await this.#recordFaults(node, faults, nowMs);
    });
  }

  release(node: KubeNode): Promise<void> {
    return this.#inTurn(() => this.#release(node));
  }

  async #exists({ metadata: { name = '', uid } }: KubeNode): Promise<boolean> {
    const stored = await this.#dependencies.objects.get(nodeRef(name));
    return stored !== undefined && stored.metadata.uid === uid;
  }

  async #release(node: KubeNode): Promise<void> {
    const uid = node.metadata.uid ?? '';
    const known = this.#sets === undefined ? undefined : [...(await this.#sets)];
    for (const entry of blocksOfNode(this.#fresh, cidrsOf(node))) {
      const set = entry.kind === 'readable' ? this.#fresh[entry.index] : undefined;
      if (entry.kind !== 'readable' || set === undefined) continue;
      const { blocks, index } = entry;
      if ((await this.#store.release(setKey(set), blocks, uid)) !== 'written') continue;
      const before = known?.[index];
      if (known !== undefined && before !== undefined) known[index] = releaseBlocks(before, [blocks]);
      this.#dependencies.meter.add(metric.CIDR_RELEASES, blocks.last - blocks.first + 1, 'Count');
    }
    if (known !== undefined) this.#sets = Promise.resolve(known);
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  /** The cached sets, read on first use. A failed read is not cached. */
  #cachedSets(): Promise<readonly CidrSet[]> {
    this.#sets ??= this.#read().catch((fault: unknown) => {
      this.#sets = undefined;
      throw fault;
    });
    return this.#sets;
  }

  async #read(): Promise<readonly CidrSet[]> {
    const stored = await Promise.all(this.#fresh.map((set) => this.#store.read(setKey(set))));
    if (stored.some(({ counted }) => !counted)) {
      await this.#recordExistingNodes();
      return this.#read();
    }
    return this.#fresh.map((set, index) => {
      const { taken = [], cursor = 0 } = stored[index] ?? {};
      return { ...occupyBlocks(set, taken), cursor: cursor % set.size };
    });
  }

  /** Records the pod CIDRs of all existing nodes, for a new cluster CIDR. Concurrent calls are safe. */
  async #recordExistingNodes(): Promise<void> {
    const { objects, clock } = this.#dependencies;
    let continueAfter: string | undefined;
    for (let page = 0; page < LIST_PAGES_MAX; page += 1) {
      const list = await objects.list({
        resource: 'nodes',
        limit: LIST_PAGE,
        ...defined({ continueAfter }),
      });
      for (const node of list.objects as readonly KubeNode[]) {
        if (cidrsOf(node).podCIDRs.length > 0)
          await this.#recordFaults(node, await this.#recordOwner(node), clock.nowMs());
      }
      continueAfter = list.next;
      if (continueAfter === undefined) {
        for (const set of this.#fresh) await this.#store.setCounted(setKey(set), clock.nowMs());
        return;
      }
    }
    throw new StoreFault('rejected', 'more nodes than can be counted for their pod CIDRs', { retryable: false });
  }

  /** Writes the node's CIDRs to the store. Returns its faults. */
  async #recordOwner(node: KubeNode): Promise<CidrFault[]> {
    const { name: nodeName = '', uid = '' } = node.metadata;
    const faults: CidrFault[] = [];
    for (const entry of blocksOfNode(this.#fresh, cidrsOf(node))) {
      if (entry.kind === 'fault') {
        faults.push(entry.fault);
        continue;
      }
      const set = this.#fresh[entry.index];
      if (set === undefined) continue;
      const written = await this.#store.occupy(setKey(set), entry.blocks, { nodeName, uid });
      if (written === 'written') {
        const { first, last } = entry.blocks;
        this.#dependencies.meter.add(metric.CIDR_ALLOCATIONS, last - first + 1, 'Count');
      }
      if (written === 'taken') faults.push(podCidrTaken(nodeName, entry.cidr, formatCidr(set.cluster)));
    }
    return faults;
  }

  async #occupy(node: KubeNode): Promise<CidrFault[]> {
    const faults = await this.#recordOwner(node);
    if (this.#sets !== undefined) {
      this.#sets = Promise.resolve(occupyNode(await this.#sets, cidrsOf(node)));
    }
    return faults;
  }

  async #allocate(node: KubeNode, nowMs: number): Promise<void> {
    const { meter } = this.#dependencies;
    const { name: nodeName = '', uid = '' } = node.metadata;
    let refusals = 0;
    let isNew = this.#sets === undefined;
    let sets = await this.#withRanges(await this.#cachedSets());
    for (let attempt = 0; attempt < TRIES_MAX; attempt += 1) {
      const allocation = allocateForNode(sets, nodeName);
      if (allocation.kind === 'exhausted') {
        if (isNew) return this.#exhausted(node, allocation.event, nowMs);
        // Other processes may have freed blocks since the cache was read.
        sets = await this.#reread();
        isNew = true;
        continue;
      }
      const { podCIDRs } = allocation;
      const blocks = blocksOfNode(sets, { nodeName, podCIDRs }).flatMap((entry) =>
        entry.kind === 'readable' ? [entry] : [],
      );
      const extra = blocks.map(({ index, blocks: { first } }) =>
        takeBlockWrite(setKey(sets[index] as CidrSet), first, { nodeName, uid }),
      );
      const outcome = await this.#assign(node, podCIDRs, extra, nowMs);
      if (outcome.kind === 'refused') {
        refusals += 1;
        const refused = blocks[outcome.index];
        sets =
          refusals % REFUSALS_PER_READ === 0 || refused === undefined
            ? await this.#reread()
            : withUsed(sets, refused.index, refused.blocks);
        continue;
      }
      if (outcome.kind === 'tooLarge') {
        await reportUnwritable(this.#dependencies, { kind: 'Node', object: node, what: 'assign pod CIDRs', nowMs });
        await this.#recordFailure(node, nowMs);
      }
      if (outcome.kind !== 'written') return;
      this.#sets = Promise.resolve(allocation.sets);
      for (const set of allocation.sets) await this.#store.moveCursor(setKey(set), set.cursor);
      meter.add(metric.CIDR_ALLOCATIONS, podCIDRs.length, 'Count');
      meter.add(metric.CIDR_TRIES, Math.max(...allocation.skipped) + refusals, 'Count');
      this.#reportUsage(allocation.sets);
      return;
    }
    await this.#recordFailure(node, nowMs);
    throw new StoreFault('throttled', 'other processes claimed every block that was tried', { retryable: true });
  }

  /** @throws StoreFault after an event on the Node, as upstream writes it when it gives up an update */
  async #assign(
    node: KubeNode,
    podCIDRs: readonly string[],
    extra: readonly TransactWrite[],
    nowMs: number,
  ): Promise<NodeChangeOutcome> {
    const { name: nodeName = '', uid = '' } = node.metadata;
    const target = { nodeName, uid, nowMs };
    try {
      return await changeNode(this.#dependencies.objects, target, (current) =>
        (current.spec?.podCIDRs ?? []).length > 0
          ? undefined
          : {
              next: { ...current, spec: { ...current.spec, podCIDR: podCIDRs[0] as string, podCIDRs: [...podCIDRs] } },
              extra,
            },
      );
    } catch (fault) {
      await this.#recordFailure(node, nowMs);
      throw fault;
    }
  }

  async #reread(): Promise<readonly CidrSet[]> {
    this.#sets = undefined;
    return this.#withRanges(await this.#cachedSets());
  }

  /** Adds the current wide CIDRs: the condition on one block does not cover them. */
  async #withRanges(sets: readonly CidrSet[]): Promise<readonly CidrSet[]> {
    return Promise.all(
      sets.map(async (set) => {
        const ranges = await this.#store.readRanges(setKey(set));
        return ranges.length === 0 ? set : occupyBlocks(set, ranges);
      }),
    );
  }

  /** Blocks are free, but none could be written to the Node. */
  async #recordFailure(node: KubeNode, nowMs: number): Promise<void> {
    const event = nodeEvent(node.metadata.name ?? '', 'CIDRAssignmentFailed');
    await recordEvents(this.#dependencies, [{ ...event, about: subjectOf('Node', node) }], nowMs);
  }

  async #exhausted(node: KubeNode, event: EventText, nowMs: number): Promise<void> {
    this.#reportUsage(await this.#cachedSets());
    await recordEvents(this.#dependencies, [{ ...event, about: subjectOf('Node', node) }], nowMs);
  }

  /** Reports the set with the highest usage, because it is exhausted first. */
  #reportUsage(sets: readonly CidrSet[]): void {
    const { meter } = this.#dependencies;
    meter.add(metric.CIDR_USAGE, Math.max(...sets.map(usageOf)), 'None');
    meter.add(metric.CIDR_BLOCKS, Math.min(...sets.map(({ size }) => size)), 'Count');
  }

  async #recordFaults(node: KubeNode, faults: readonly CidrFault[], nowMs: number): Promise<void> {
    if (faults.length === 0) return;
    const events = faults.map(({ event }) => ({ ...event, about: subjectOf('Node', node), once: event.message }));
    await recordEvents(this.#dependencies, events, nowMs);
  }
}

function withUsed(sets: readonly CidrSet[], index: number, blocks: BlockRange): readonly CidrSet[] {
  return sets.map((set, each) => (each === index && !isUsed(set, blocks.first) ? occupyBlocks(set, [blocks]) : set));
}
