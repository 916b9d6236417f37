/**
 * Pod CIDRs of nodes: a block from each cluster CIDR for a node that has none, written with the blocks in one transaction.
 *
 * The sets in memory are a picture of the store, good for choosing; what counts is the condition on each block's item. So
 * any number of processes may allocate at once: whoever comes second to a block is refused, notes it as used, and takes
 * the next. A node that could not be served is looked at again with its next change, its status report at the latest.
 *
 * Where the cluster CIDRs are new, what nodes have already is counted in before the first block is given away.
 *
 * Source: pkg/controller/nodeipam/ipam/range_allocator.go; D8 in docs/deviations.md.
 */

import { formatCidr } from '../../domain/cidrs/cidr.ts';
import {
  type BlockRange,
  type CidrSet,
  isUsed,
  occupyBlocks,
  releaseBlocks,
  usageOf,
} from '../../domain/cidrs/cidr-set.ts';
import { blocksOfNode, type CidrFault, createCidrSets } from '../../domain/cidrs/cluster-cidrs.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import type { KubeNode } from '../../kube/types.ts';
import { StoreFault } from '../../ports/item-store.ts';
import { changeNode, nodeRef } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { recordEvents, subjectOf } from '../framework/record-event.ts';
import { reportUnwritable } from '../framework/report-unwritable.ts';
import { type CidrSetKey, type CidrStore, cidrStore, takeBlockWrite } from './cidr-store.ts';
import * as metric from './metrics.ts';
import { allocateForNode, nodeEvent, occupyNode, podCidrTaken } from './rule.ts';

/** Blocks tried for one node in a row; so many processes must have been faster. */
const TRIES_MAX = 64;
/** Refusals after which the picture is made anew. */
const REFUSALS_A_PICTURE = 8;
const LIST_PAGE = 500;
/** Nodes that are counted in at most, when a cluster CIDR is new. */
const LIST_PAGES_MAX = 2_000;

export interface CidrAllocator {
  /** A node that is there: its CIDRs are noted, or it gets some. */
  settle(node: KubeNode, nowMs: number): Promise<void>;
  /** A node that is gone: its blocks are free again. */
  release(node: KubeNode): Promise<void>;
}

const OFF: CidrAllocator = { settle: () => Promise.resolve(), release: () => Promise.resolve() };

const setKey = (set: CidrSet): CidrSetKey => `${formatCidr(set.cluster)}#${set.nodePrefix}`;
const cidrsOf = (node: KubeNode) => ({
  nodeName: node.metadata.name ?? '',
  podCIDRs: node.spec?.podCIDRs ?? [],
});

/** @throws RangeError when the policy's CIDRs cannot work; parsePolicy refuses such a policy with the field's name. */
export function cidrAllocator(dependencies: ControllerDependencies): CidrAllocator {
  const creation = createCidrSets(dependencies.policy);
  if (creation.kind === 'off') return OFF;
  if (creation.kind === 'refused') throw new RangeError(creation.reasons.join('; '));
  return new Allocator(dependencies, creation.sets);
}

class Allocator implements CidrAllocator {
  readonly #dependencies: ControllerDependencies;
  readonly #store: CidrStore;
  /** As configured, with only the service ranges used. */
  readonly #fresh: readonly CidrSet[];
  #sets: Promise<readonly CidrSet[]> | undefined;
  /** One node after the other: two at once in one process would only race for the same block. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(dependencies: ControllerDependencies, fresh: readonly CidrSet[]) {
    this.#dependencies = dependencies;
    this.#store = cidrStore(dependencies.items);
    this.#fresh = fresh;
  }

  settle(node: KubeNode, nowMs: number): Promise<void> {
    return this.#inTurn(async () => {
      const { podCIDRs } = cidrsOf(node);
      if (podCIDRs.length === 0) return this.#allocate(node, nowMs);
      const faults = await this.#occupy(node);
      // A record that is delivered again may be of a Node that has gone since, and nobody else would give its blocks back.
      if (!(await this.#isThere(node))) return this.#release(node);
      await this.#tell(node, faults, nowMs);
    });
  }

  release(node: KubeNode): Promise<void> {
    return this.#inTurn(() => this.#release(node));
  }

  async #isThere({ metadata: { name = '', uid } }: KubeNode): Promise<boolean> {
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

  /** The picture, made when first needed; a failure to make it is not kept. */
  #picture(): Promise<readonly CidrSet[]> {
    this.#sets ??= this.#read().catch((fault: unknown) => {
      this.#sets = undefined;
      throw fault;
    });
    return this.#sets;
  }

  async #read(): Promise<readonly CidrSet[]> {
    const stored = await Promise.all(this.#fresh.map((set) => this.#store.read(setKey(set))));
    if (stored.some(({ counted }) => !counted)) {
      await this.#countIn();
      return this.#read();
    }
    return this.#fresh.map((set, index) => {
      const { taken = [], cursor = 0 } = stored[index] ?? {};
      return { ...occupyBlocks(set, taken), cursor: cursor % set.size };
    });
  }

  /** What nodes have, from before this store was kept. Twice at once does no harm. */
  async #countIn(): Promise<void> {
    const { objects, clock } = this.#dependencies;
    let continueAfter: string | undefined;
    for (let page = 0; page < LIST_PAGES_MAX; page += 1) {
      const list = await objects.list({
        resource: 'nodes',
        limit: LIST_PAGE,
        ...(continueAfter === undefined ? {} : { continueAfter }),
      });
      for (const node of list.objects as readonly KubeNode[]) {
        if (cidrsOf(node).podCIDRs.length > 0) await this.#tell(node, await this.#noteAll(node), clock.nowMs());
      }
      continueAfter = list.next;
      if (continueAfter === undefined) {
        for (const set of this.#fresh) await this.#store.setCounted(setKey(set), clock.nowMs());
        return;
      }
    }
    throw new StoreFault('rejected', 'more nodes than can be counted for their pod CIDRs', { retryable: false });
  }

  /** Into the store; the faults of the node. */
  async #noteAll(node: KubeNode): Promise<CidrFault[]> {
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
    const faults = await this.#noteAll(node);
    if (this.#sets !== undefined) {
      this.#sets = Promise.resolve(occupyNode(await this.#sets, cidrsOf(node)));
    }
    return faults;
  }

  async #allocate(node: KubeNode, nowMs: number): Promise<void> {
    const { objects, meter } = this.#dependencies;
    const { name: nodeName = '', uid = '' } = node.metadata;
    let refusals = 0;
    let isNew = this.#sets === undefined;
    let sets = await this.#withRanges(await this.#picture());
    for (let attempt = 0; attempt < TRIES_MAX; attempt += 1) {
      const allocation = allocateForNode(sets, nodeName);
      if (allocation.kind === 'exhausted') {
        if (isNew) return this.#exhausted(node, allocation.event, nowMs);
        // Others may have given blocks back since the picture was made.
        sets = await this.#anew();
        isNew = true;
        continue;
      }
      const { podCIDRs } = allocation;
      const blocks = blocksOfNode(sets, { nodeName, podCIDRs }).flatMap((entry) =>
        entry.kind === 'readable' ? [entry] : [],
      );
      const outcome = await changeNode(objects, { nodeName, uid, nowMs }, (current) =>
        (current.spec?.podCIDRs ?? []).length > 0
          ? undefined
          : {
              next: { ...current, spec: { ...current.spec, podCIDR: podCIDRs[0] as string, podCIDRs: [...podCIDRs] } },
              extra: blocks.map(({ index, blocks: { first } }) =>
                takeBlockWrite(setKey(sets[index] as CidrSet), first, { nodeName, uid }),
              ),
            },
      );
      if (outcome.kind === 'refused') {
        refusals += 1;
        const refused = blocks[outcome.index];
        sets =
          refusals % REFUSALS_A_PICTURE === 0 || refused === undefined
            ? await this.#anew()
            : withUsed(sets, refused.index, refused.blocks);
        continue;
      }
      if (outcome.kind === 'tooLarge') {
        await reportUnwritable(this.#dependencies, { kind: 'Node', object: node, what: 'assign pod CIDRs', nowMs });
        await this.#tellFailed(node, nowMs);
      }
      if (outcome.kind !== 'written') return;
      this.#sets = Promise.resolve(allocation.sets);
      for (const set of allocation.sets) await this.#store.moveCursor(setKey(set), set.cursor);
      meter.add(metric.CIDR_ALLOCATIONS, podCIDRs.length, 'Count');
      meter.add(metric.CIDR_TRIES, Math.max(...allocation.skipped) + refusals, 'Count');
      this.#tellUsage(allocation.sets);
      return;
    }
    await this.#tellFailed(node, nowMs);
    throw new StoreFault('throttled', 'every block tried was somebody else’s by then', { retryable: true });
  }

  async #anew(): Promise<readonly CidrSet[]> {
    this.#sets = undefined;
    return this.#withRanges(await this.#picture());
  }

  /** With the wide CIDRs of this moment: no condition on one block would see them. */
  async #withRanges(sets: readonly CidrSet[]): Promise<readonly CidrSet[]> {
    return Promise.all(
      sets.map(async (set) => {
        const ranges = await this.#store.readRanges(setKey(set));
        return ranges.length === 0 ? set : occupyBlocks(set, ranges);
      }),
    );
  }

  /** There are blocks, but none could be written into the Node. */
  async #tellFailed(node: KubeNode, nowMs: number): Promise<void> {
    const event = nodeEvent(node.metadata.name ?? '', 'CIDRAssignmentFailed');
    await recordEvents(this.#dependencies, [{ ...event, about: subjectOf('Node', node) }], nowMs);
  }

  async #exhausted(node: KubeNode, event: EventText, nowMs: number): Promise<void> {
    this.#tellUsage(await this.#picture());
    await recordEvents(this.#dependencies, [{ ...event, about: subjectOf('Node', node) }], nowMs);
  }

  /** Of the fullest set: the one that a person has to look at. */
  #tellUsage(sets: readonly CidrSet[]): void {
    const { meter } = this.#dependencies;
    meter.add(metric.CIDR_USAGE, Math.max(...sets.map(usageOf)), 'None');
    meter.add(metric.CIDR_BLOCKS, Math.min(...sets.map(({ size }) => size)), 'Count');
  }

  async #tell(node: KubeNode, faults: readonly CidrFault[], nowMs: number): Promise<void> {
    if (faults.length === 0) return;
    const events = faults.map(({ event }) => ({ ...event, about: subjectOf('Node', node), once: event.message }));
    await recordEvents(this.#dependencies, events, nowMs);
  }
}

function withUsed(sets: readonly CidrSet[], index: number, blocks: BlockRange): readonly CidrSet[] {
  return sets.map((set, each) => (each === index && !isUsed(set, blocks.first) ? occupyBlocks(set, [blocks]) : set));
}
