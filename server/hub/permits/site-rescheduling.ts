/**
 * Rescheduling inside of a site (decision 0068): permits for its machines, and what the hub does about machines that
 * are silent. With a link it has the cluster delete their pods; without one it moves them.
 *
 * One look at a time. Each act is durable before it has an effect (site-permits.ts). A look that fails is repeated by
 * the next one: the cluster answers a repeated request as the first.
 */
import { SITE_MOVES, type SiteMove, type SiteMoveAnswer } from '../../../shared/agents/site-move.ts';
import type { PermitAnswer, PermitRequest } from '../../../shared/agents/site-permits.ts';
import type { RandomSource } from '../../../shared/clock.ts';
import { readyStatusOf } from '../../../shared/fleet/nodes/conditions.ts';
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import { copyOf } from '../../../shared/kinds/pods/site-copy.ts';
import { hubOfMachine, permitFenceMs, siteHubOf } from '../../../shared/kinds/pods/site-permit.ts';
import { SITE_POLICIES } from '../../../shared/kinds/site-policies/resource.ts';
import { isNamed, SITE_POLICIES_MAX } from '../../../shared/kinds/site-policies/site-hub.ts';
import type { KubeNode, KubePod, KubeSitePolicy } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import { Snapshot } from '../../../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../../../shared/scheduling/world.rule.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';
import type { Replica } from '../replica.ts';
import type { Upstream } from '../upstream.ts';
import { fixedBecause, targetOf } from './movable-pod.rule.ts';
import { readPermits, savePermit } from './permit-file.ts';
import { type Hearing, hearingAfter, machineToSwitchOff } from './power-switch.rule.ts';
import { type Move, SitePermits, type SitePod } from './site-permits.ts';

/** Without a complete read for this time, the link is down. Longer than a read without an answer. Milliseconds. */
export const LINK_DOWN_MS = 60_000;
const PAGE_PODS = 500;
/**
 * Releases of one machine, of pods that the copy does not have: so many are kept, until the copy is read anew with a
 * link. Each of these requests reads all pods of the copy, so a machine has one per second.
 */
export const UNKNOWN_RELEASES_MAX = 1_000;
const UNKNOWN_EVERY_MS = 1_000;
const ANSWER_MS = 30_000;

export interface SiteReschedulingOptions {
  /** User name of the hub at its cluster. */
  readonly hubName: string;
  readonly items: ItemStore;
  /** Reads the copy. */
  readonly objects: Pick<ObjectStore, 'list' | 'listByNode'>;
  readonly replica: Pick<Replica, 'holds'>;
  readonly upstream: Upstream;
  readonly monotonicMs: () => number;
  /** Epoch milliseconds, for people. */
  readonly nowMs: () => number;
  readonly random: Pick<RandomSource, 'uuid'>;
  readonly log: Log;
  /** Ends the power of a machine. False, or no answer: that is unknown. Absent: the site has no such switch. */
  readonly switchOff?: (nodeName: string) => Promise<boolean>;
  /** For tests. */
  readonly permitsOf?: (options: ConstructorParameters<typeof SitePermits>[0]) => SitePermits;
}

export interface SiteRescheduling {
  /** A machine asks, reports pods that it released, and copies that it has stopped. @throws StoreFault */
  permit(nodeName: string, request: PermitRequest): Promise<PermitAnswer>;
  /** Every resource was read from the cluster. */
  onRead(): void;
  /** Does what is due. @throws StoreFault, UpstreamUnreachable */
  look(): Promise<void>;
}

/** @throws StoreFault */
export async function openSiteRescheduling(options: SiteReschedulingOptions): Promise<SiteRescheduling> {
  const { hubName, items, objects, replica, upstream, monotonicMs, nowMs, random, log, switchOff } = options;
  const making = {
    records: await readPermits(items),
    monotonicMs,
    save: (change: Parameters<typeof savePermit>[1]) => savePermit(items, change),
  };
  const permits = options.permitsOf?.(making) ?? new SitePermits(making);
  let readAtMs = monotonicMs();
  let hasRead = false;
  /** Requests that are being answered, and all so far. */
  let asking = 0;
  let asked = 0;
  const isLinkDown = (): boolean => monotonicMs() - readAtMs >= LINK_DOWN_MS;
  /** By machine: when the switch was last asked. */
  const switchedAtMs = new Map<string, number>();
  let isSwitching = false;
  let hearing: Hearing | undefined;
  /** By machine. */
  const unknownReleases = new Map<string, { readonly kept: number; readonly atMs: number }>();

  const isOurs = (pod: KubePod): boolean => siteHubOf(pod) === hubName;
  const sitePod = (pod: KubePod): SitePod => ({
    uid: pod.metadata.uid ?? '',
    nodeName: pod.spec?.nodeName ?? '',
    fenceMs: permitFenceMs(pod) ?? Number.POSITIVE_INFINITY,
    isDeleting: pod.metadata.deletionTimestamp !== undefined,
    hasEnded: isTerminated(pod),
  });

  async function listAll<T>(resource: string): Promise<readonly T[]> {
    const found: unknown[] = [];
    for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
      const page = await objects.list({
        resource,
        limit: PAGE_PODS,
        ...(after !== undefined && { continueAfter: after }),
      });
      found.push(...page.objects);
      after = page.next;
    }
    return found as readonly T[];
  }

  /**
   * Asks the power switch for one silent machine. The look does not wait for it. A process that dies meanwhile is
   * followed by one that asks again. An answer counts from before it was asked for, and only if the machine has not
   * asked for permits since: then it was silent all the time, and what it ran before has ended.
   */
  async function switchOffSilent(known: readonly SitePod[]): Promise<void> {
    if (switchOff === undefined) return;
    const holders = permits.silentHolders(known);
    const isReady = ({ status }: KubeNode): boolean => !isLinkDown() && readyStatusOf(status?.conditions) === 'True';
    const machines = (await listAll<KubeNode>('nodes'))
      .filter((node) => hubOfMachine(node) === hubName)
      .map((node) => {
        const { name = '' } = node.metadata;
        const triedAtMs = switchedAtMs.get(name);
        return {
          name,
          askedAtMs: permits.askedAtMs(name),
          isReady: isReady(node),
          isSilent: permits.isSilent(name),
          holdsPods: holders.has(name),
          triedAtMs,
        };
      });
    const atMs = monotonicMs();
    hearing = hearingAfter(hearing, machines, atMs);
    const nodeName = isSwitching ? undefined : machineToSwitchOff(machines, hearing, atMs);
    if (nodeName === undefined) return;
    switchedAtMs.set(nodeName, atMs);
    log.warn('a silent machine is switched off', { nodeName });
    isSwitching = true;
    void switchOff(nodeName)
      .then((isOff) => {
        if (isOff) permits.lostPower(nodeName, atMs);
        log.warn(isOff ? 'a silent machine has no power' : 'a silent machine could not be switched off', { nodeName });
      })
      .finally(() => {
        isSwitching = false;
      });
  }

  /** Undefined: it does not answer. It may have done it, and is asked again by the next look. */
  async function send(move: SiteMove): Promise<SiteMoveAnswer | undefined> {
    const { group, version, resource } = SITE_MOVES;
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    const body = Buffer.from(JSON.stringify(move));
    const path = `/apis/${group}/${version}/${resource}`;
    const answer = await upstream.send({ method: 'POST', path, headers, body }, { timeoutMs: ANSWER_MS });
    if (answer.status === 200) return JSON.parse(answer.body.toString('utf8')) as SiteMoveAnswer;
    const pod = `${move.namespace}/${move.name}`;
    log.warn('the cluster refuses what the hub has decided about a pod', { pod, status: answer.status });
    return undefined;
  }

  /** The cluster deletes a pod that no machine runs any more. */
  async function deletePod({ metadata }: KubePod, why: string): Promise<void> {
    const { namespace = '', name = '', uid = '' } = metadata;
    const decidedAt = new Date(nowMs()).toISOString();
    const answer = await send({ namespace, name, from: [uid], decidedAt, why });
    log.info('the cluster was asked to delete a pod that no machine runs', {
      pod: `${namespace}/${name}`,
      why,
      answer,
    });
  }

  async function merge(origin: string, { uid, nodeName, from, moved }: Move): Promise<void> {
    const { namespace, name, atMs, why } = moved;
    const decidedAt = new Date(atMs).toISOString();
    const answer = await send({ namespace, name, from, copy: { uid, nodeName }, decidedAt, why });
    if (answer?.outcome !== 'refused') return;
    log.warn('the copy of a pod is withdrawn', { pod: `${namespace}/${name}`, reason: answer.reason });
    await permits.settle(origin, uid, 'withdrawn');
  }

  async function moveLost(pods: readonly KubePod[], known: readonly SitePod[]): Promise<void> {
    const lost = permits.lost(known);
    if (lost.length === 0) return;
    const [nodes, policies] = await Promise.all([
      listAll<KubeNode>('nodes'),
      objects.list({ resource: SITE_POLICIES.resource, limit: SITE_POLICIES_MAX }),
    ]);
    const placed = [...pods, ...permits.moves().map(([, { moved }]) => moved.copy)].map(schedulablePod);
    const snapshots = new Map<string, Snapshot>();
    const snapshotOf = (namespace: string): Snapshot => {
      const known = snapshots.get(namespace);
      if (known !== undefined) return known;
      const isTarget = (node: KubeNode): boolean => {
        const name = node.metadata.name ?? '';
        const hub = { name, siteHub: hubOfMachine(node) };
        return (
          hub.siteHub === hubName &&
          !permits.isSilent(name) &&
          isNamed(hub, namespace, policies.objects as readonly KubeSitePolicy[])
        );
      };
      const snapshot = new Snapshot();
      for (const node of nodes.filter(isTarget)) snapshot.setNode(schedulableNode(node));
      for (const other of placed) snapshot.setPod(other);
      snapshots.set(namespace, snapshot);
      return snapshot;
    };
    // One after the other: each is decided beside those before it.
    for (const each of lost) {
      const former = permits.moveTo(each.uid);
      const pod = pods.find(({ metadata }) => metadata.uid === each.uid) ?? former?.moved.copy;
      if (pod === undefined || each.isDeleting || fixedBecause(pod) !== undefined) continue;
      const { namespace = '' } = pod.metadata;
      const nodeName = targetOf(pod, snapshotOf(namespace));
      if (nodeName === undefined) continue;
      const origin =
        former?.state === 'waiting'
          ? { name: former.moved.name, uid: former.from[0]! }
          : { name: pod.metadata.name ?? '', uid: each.uid };
      const uid = random.uuid();
      const moved = { namespace, name: origin.name, copy: copyOf(pod, origin, { uid, nodeName }) };
      const why = permits.whyLost(each);
      const what =
        former === undefined
          ? 'a pod of a silent machine is moved without the cluster'
          : 'a copy of a silent machine is moved on without the cluster';
      const move = await permits.move(each, { uid, nodeName, moved: { ...moved, atMs: nowMs(), why } });
      if (move === undefined) continue;
      log.warn(what, { pod: `${namespace}/${origin.name}`, from: each.nodeName, nodeName, uid });
      placed.push(schedulablePod(moved.copy));
      for (const snapshot of snapshots.values()) snapshot.setPod(schedulablePod(moved.copy));
    }
  }

  /**
   * Those of the released pods that this request cannot release: they are of another machine or of another hub, or too
   * many of them are unknown. The machine asks again.
   */
  async function unreleasable(
    nodeName: string,
    own: readonly KubePod[],
    released: readonly string[],
  ): Promise<ReadonlySet<string>> {
    const known = new Set(own.map(({ metadata }) => metadata.uid));
    const unknown = released.filter((uid) => !known.has(uid) && permits.moveTo(uid)?.nodeName !== nodeName);
    if (unknown.length === 0) return new Set();
    const [before, atMs] = [unknownReleases.get(nodeName), monotonicMs()];
    const kept = (before?.kept ?? 0) + unknown.length;
    const isEarly = before !== undefined && atMs - before.atMs < UNKNOWN_EVERY_MS;
    if (isEarly || kept > UNKNOWN_RELEASES_MAX) return new Set(unknown);
    unknownReleases.set(nodeName, { kept, atMs });
    const pods = new Set((await listAll<KubePod>('pods')).map(({ metadata }) => metadata.uid));
    return new Set(unknown.filter((uid) => pods.has(uid) || permits.moveTo(uid) !== undefined));
  }

  async function permit(nodeName: string, { released = [], stopped = [] }: PermitRequest): Promise<PermitAnswer> {
    const pods = (await objects.listByNode(nodeName)).filter(isOurs);
    for (const uid of stopped) permits.hasStopped(nodeName, uid);
    const confirmed: string[] = [];
    const refused = await unreleasable(nodeName, pods, released);
    for (const uid of released) {
      if (refused.has(uid)) continue;
      const pod = pods.find(({ metadata }) => metadata.uid === uid);
      const fenceMs = pod === undefined ? Number.POSITIVE_INFINITY : sitePod(pod).fenceMs;
      const claimedBy = pod === undefined && permits.moveTo(uid) === undefined ? nodeName : undefined;
      if (await permits.release({ uid, fenceMs }, claimedBy)) confirmed.push(uid);
    }
    const permitted = permits.ask(nodeName, pods.map(sitePod));
    const copies = permitted.flatMap((uid) => {
      const move = permits.moveTo(uid);
      return move?.state === 'waiting' ? [move.moved.copy] : [];
    });
    return { hub: hubName, permitted, copies, withdrawn: permits.withdrawn(nodeName), released: confirmed };
  }

  return {
    onRead() {
      readAtMs = monotonicMs();
      hasRead = true;
    },
    async permit(nodeName, request) {
      asking += 1;
      asked += 1;
      try {
        return await permit(nodeName, request);
      } finally {
        asking -= 1;
      }
    },
    async look() {
      if (!replica.holds('pods') || !replica.holds('nodes') || !replica.holds(SITE_POLICIES.resource)) return;
      await permits.retry();
      const askedBefore = asked;
      const pods = (await listAll<KubePod>('pods')).filter(isOurs);
      const known = pods.map(sitePod);
      if (hasRead) await permits.begin(known);
      // Who asks now may have read pods that no longer exist, and must find what was decided about them. Who has asked
      // since the pods were read may have been permitted one that is not among them.
      if (hasRead && !isLinkDown() && asking === 0 && asked === askedBefore) {
        await permits.forget(new Set(known.map(({ uid }) => uid)));
        unknownReleases.clear();
      }
      await switchOffSilent(known);
      if (isLinkDown()) return moveLost(pods, known);
      for (const pod of permits.lost(known)) {
        if (await permits.giveUp(pod))
          log.warn('a pod of a silent machine is given up', { uid: pod.uid, nodeName: pod.nodeName });
      }
      const byUid = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]));
      for (const { uid, why } of permits.deletable(known)) await deletePod(byUid.get(uid)!, why);
      for (const [origin, move] of permits.moves()) {
        if (move.state !== 'waiting') continue;
        if (byUid.has(move.uid)) {
          log.info('the cluster has the copy of a pod', {
            pod: `${move.moved.namespace}/${move.moved.name}`,
            uid: move.uid,
          });
          await permits.settle(origin, move.uid, 'merged');
        } else await merge(origin, move);
      }
    },
  };
}
