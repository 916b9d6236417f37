/** What a run derives from its seed and options, before anything happens. */
import { type MemoryCloud, memoryCloud } from '../demo/ec2/cloud.ts';
import { defined } from '../shared/defined.ts';
import { defaultPolicy, type Policy } from '../shared/fleet/policy.ts';
import { type MemoryItemStore, memoryItemStore } from '../shared/store/memory/item-store.ts';
import { type ClusterView, clusterView } from './cluster-view.ts';
import { type FaultPlan, faultPlan, faultsOf } from './faults/catalogue.ts';
import { hasWrongClock } from './faults/lying-clocks.ts';
import { type PartName, partsOf } from './parts.ts';
import { cidrPolicyOf } from './people-cidrs.ts';
import { SIM_PROFILES } from './people-profiles.ts';
import { type RecentChanges, recentChanges } from './recent-changes.ts';
import { hashOf, seededFraction } from './seeded-random.ts';
import type { SimOptions } from './sim-options.ts';
import { SIMULATED_REGION } from './simulated-instance.ts';
import { sqliteTables } from './sqlite-tables.ts';
import { type VirtualTime, virtualTime } from './virtual-time.ts';

export const START_MS = Date.UTC(2026, 0, 1);
const ACCOUNT_ID = '123456789012';
/** Share of machines with bad objects. One machine has them in any case. */
const POISONED_SHARE = 0.1;

export interface SimSetup {
  readonly options: SimOptions;
  readonly seed: number;
  /** Random numbers for one purpose: those of one purpose do not change those of another. */
  readonly random: (purpose: string) => () => number;
  readonly parts: readonly PartName[];
  readonly nodes: number;
  readonly zones: number;
  /** Fields of the policy that the seed and the options set. */
  readonly chosenPolicy: Partial<Policy>;
  readonly policy: Policy;
  /** Epoch milliseconds. */
  readonly endMs: number;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly tables: MemoryItemStore;
  /** Deletes what time to live deletes. A promise where that needs requests. */
  expire(nowSeconds: number): Promise<void> | undefined;
  /** Closes the tables. @throws StoresDisagree */
  end(): Promise<void>;
  readonly recent: RecentChanges;
  readonly view: ClusterView;
  readonly cloud: MemoryCloud;
  /** Whether a machine has bad objects, now or later. */
  readonly isPoisoned: (name: string) => boolean;
  /** Whether the clocks of a machine are wrong. */
  readonly hasWrongClock: (name: string) => boolean;
}

/** The policy of a seed: small zones, rates and times that reach every branch of the rules within hours. */
export function seededPolicy(fraction: () => number): Partial<Policy> {
  const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(fraction() * choices.length)]!;
  const timing = oneOf<Partial<Policy>>(
    {},
    {},
    {},
    { nodeMonitorPeriodSeconds: 10, nodeMonitorGracePeriodSeconds: 50 },
    {
      nodeMonitorGracePeriodSeconds: 60,
    },
  );
  return {
    ...timing,
    nodeEvictionRatePerSecond: oneOf(0.1, 0.1, 0.05, 0.5),
    secondaryNodeEvictionRatePerSecond: oneOf(0.01, 0.05),
    largeClusterSizeThreshold: oneOf(50, 5),
    podEvictionTimeoutSeconds: oneOf(300, 60, 20),
    fullDisruption: oneOf('normal', 'normal', 'hold'),
    terminatedPodGcThreshold: oneOf(12_500, 2),
  };
}

export function setUpSim(options: SimOptions): SimSetup {
  const { seed, hours } = options;
  const random = (purpose: string): (() => number) => seededFraction(hashOf(`${seed} ${purpose}`));
  const shape = random('shape');
  const parts = options.parts ?? partsOf(seed);
  const nodes = options.nodes ?? 5 + Math.floor(shape() ** 2 * 40);
  const zones = 1 + Math.floor(shape() * 3.999);
  const blocks = parts.includes('podCidrs') ? cidrPolicyOf(random('pod cidrs'), nodes) : {};
  // Short enough to end within a storm and the calm after it.
  const detachPolicy = parts.includes('volumes') ? { forceDetachTimeoutSeconds: 90 } : {};
  const markPolicy = parts.includes('markParts') ? { nodesMarkedPerTickMax: 1, nodesQueuedPerZoneMax: 2 } : {};
  const profiles = parts.includes('profiles') ? { profiles: SIM_PROFILES } : {};
  // Pods of silent nodes are evicted although other nodes of the zone are silent, too.
  const offlinePolicy = parts.includes('offlineStop')
    ? { largeClusterSizeThreshold: 0, nodeEvictionRatePerSecond: 0.5, secondaryNodeEvictionRatePerSecond: 0.5 }
    : {};
  const url: Partial<Policy> = parts.includes('heartbeatUrl') ? { heartbeatUrl: 'on' } : {};
  const chosenPolicy: Partial<Policy> = {
    ...(parts.includes('witnesses') ? {} : { witnessGraceSeconds: 0 }),
    ...seededPolicy(shape),
    ...url,
    ...blocks,
    ...detachPolicy,
    ...markPolicy,
    ...profiles,
    ...offlinePolicy,
    ...options.policy,
  };
  const endMs = START_MS + hours * 3_600_000;
  const sqlite = options.store === 'sqlite' ? sqliteTables({ nowMs: () => time.nowMs() }) : undefined;
  const time: VirtualTime = virtualTime(START_MS, sqlite?.settled);
  const plan = faultPlan({
    seed,
    startMs: START_MS,
    endMs,
    faults: options.faults ?? faultsOf(seed),
    nowMs: time.nowMs,
    ...defined({ faultsAStorm: options.faultsAStorm }),
  });
  const tables = sqlite?.tables ?? memoryItemStore({ changesOf: ['health', 'objects', 'control'] });
  const recent = recentChanges(tables);
  const view = clusterView(tables);
  const cloud = memoryCloud({
    clock: time,
    region: SIMULATED_REGION,
    accountId: ACCOUNT_ID,
    startingMs: 5_000,
    stoppingMs: 10_000,
    shuttingDownMs: Math.floor(shape() * 30_000),
  });
  const first = hashOf(`${seed} first poisoned`) % nodes;
  return {
    options,
    seed,
    random,
    parts,
    nodes,
    zones,
    chosenPolicy,
    policy: { ...defaultPolicy, ...chosenPolicy },
    endMs,
    time,
    plan,
    tables,
    expire(nowSeconds) {
      if (sqlite !== undefined) return sqlite.expire(nowSeconds);
      tables.expire('objects', nowSeconds);
      return undefined;
    },
    end: async () => sqlite?.end(),
    recent,
    view,
    cloud,
    isPoisoned: (name) =>
      plan.has('poison') &&
      (name === `m-${first}` || seededFraction(hashOf(`${seed} poisoned ${name}`))() < POISONED_SHARE),
    hasWrongClock: (name) => plan.has('lyingClocks') && hasWrongClock(seed, name),
  };
}
