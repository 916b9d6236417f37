/** Bugs of those who decide where a pod of a site runs: hub, cluster and machines. */
import { SitePermits } from '../../server/hub/permits/site-permits.ts';
import { UpstreamUnreachable } from '../../server/hub/upstream.ts';
import { SITE_MOVES } from '../../shared/agents/site-move.ts';
import { SITE_HUB } from '../../shared/kinds/pods/site-permit.ts';
import type { PlantedHub } from '../../simulation/hub-process.ts';
import type { Plant, PlantedBug } from './find-bug.ts';
import { seenThrough, textOf } from './planted-bugs.ts';

const CONTROLLERS: ReadonlySet<string> = new Set(['object-stream', 'evictor', 'pod-gc']);
const unseen = seenThrough({
  read: (item) =>
    String(item['pk']).startsWith('o#pods#') && item['o'] !== undefined
      ? { ...item, o: textOf(item).replaceAll(SITE_HUB, 'sim.nodekeeper.dev/other') }
      : item,
});
/** The controllers do not see the hub of pods, and replace them by themselves. */
const blind: Plant = {
  items: (items, process) => (CONTROLLERS.has(process.name) ? unseen.items!(items, process) : items),
};

class Unfenced extends SitePermits {
  override isFenced(): boolean {
    return true;
  }
}

/** It believes the power switch also when that has failed. */
const trusting: NonNullable<PlantedHub['switchOff']> = (switchOff) => async (nodeName) => {
  await switchOff(nodeName);
  return true;
};

/** It knows a copy as one that may run, although the cluster has refused it. */
class Insisting extends SitePermits {
  override async settle(...settled: Parameters<SitePermits['settle']>): Promise<void> {
    if (settled[2] !== 'withdrawn') await super.settle(...settled);
  }
}

/** Nothing that it has decided reaches the cluster. */
const silent: NonNullable<PlantedHub['upstream']> = (upstream) => ({
  ...upstream,
  send: async (request, limits) => {
    if (!request.path.endsWith(SITE_MOVES.resource)) return upstream.send(request, limits);
    throw new UpstreamUnreachable('the request is lost');
  },
});

const S2 = ['S2'] as const;
const S3 = ['S3'] as const;

export const SITE_BUGS: readonly PlantedBug[] = [
  {
    bug: 'a fence that is ignored',
    seed: 13,
    laws: S2,
    plant: { hub: { permits: (options) => new Unfenced(options) } },
  },
  {
    bug: 'a move that the next process does not know',
    laws: S2,
    plant: {
      hub: {
        permits: (options) =>
          new SitePermits({
            ...options,
            save: async (change) => (change.kind === 'move' ? undefined : options.save(change)),
          }),
      },
    },
  },
  { bug: 'a power switch that has failed', seed: 15, laws: S2, plant: { hub: { switchOff: trusting } } },
  { bug: 'a fence by the wall clock', laws: S2, plant: { hub: { fenceClock: (clock) => clock.nowMs } } },
  { bug: 'a cluster that replaces pods of a site', laws: ['L7'], plant: blind },
  { bug: 'a machine that starts them by a list', laws: S2, plant: { offlineRules: { startsByList: true } } },
  { bug: 'a machine that counts heartbeats for them', laws: S2, plant: { offlineRules: { countsBeats: true } } },
  {
    bug: 'a machine that reports their end without a release',
    laws: S2,
    plant: { offlineRules: { skipsRelease: true } },
  },
  {
    bug: 'a copy that runs on after the cluster refused it',
    seed: 20,
    laws: S3,
    plant: { hub: { permits: (options) => new Insisting(options) } },
  },
  { bug: 'a move that the cluster never learns of', seed: 10, laws: S3, plant: { hub: { upstream: silent } } },
];
