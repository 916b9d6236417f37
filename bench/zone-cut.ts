/**
 * A zone with live nodes that cannot reach us: which of them are tainted, which pods are deleted, and how long the
 * repair lasts after the path has recovered. On virtual time, twice: with the rules only, at any size; and with the
 * real controllers over tables in memory, for small fleets, to show that the store adds nothing.
 *
 * A machine notices that it gets through with its next beat, at a random phase of its interval, and posts status with
 * it.
 */

import { decideEvictions } from '../shared/controllers/evictor/rule.ts';
import { decideMonitor, type MonitorDecision } from '../shared/controllers/node-monitor/rule.ts';
import { isSuspect } from '../shared/domain/nodes/health.ts';
import type { NodeHealth } from '../shared/domain/nodes/node-health.ts';
import type { Policy } from '../shared/domain/policy.ts';
import { applyDisruption, type DisruptionRecord, NO_DISRUPTION } from '../shared/domain/zones/disruption.ts';
import type { QueuedNode, ZoneRecord } from '../shared/domain/zones/fleet-records.ts';
import { decideGate, type GateRecord, gateVerdictFor, UNTRIED_GATE } from '../shared/domain/zones/gate.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { controlledFleet } from '../test/support/controlled-fleet.ts';
import { changeRate, fullLimiter, takeToken } from '../test/support/token-bucket.ts';
import { percentile } from './benchmark.ts';

export const CUT_ZONES = 4;
const START_MS = Date.UTC(2026, 0, 1);
/** Quiet beforehand: the gate opens, zones get their records. */
const SETTLED_MS = 60_000;
/** Given up after this long. */
const RECOVERY_LIMIT_MS = 3_600_000;
const SEED = 9_241;

export interface ZoneCutOptions {
  readonly nodes: number;
  readonly policy: Policy;
  readonly cutSeconds: number;
}

export interface ZoneCutResult {
  /** Nodes in the zone; all of them live. */
  readonly cutNodes: number;
  readonly marked: number;
  /** Got the NoExecute taint. */
  readonly tainted: number;
  /** Carried it for podEvictionTimeoutSeconds: pods with the usual toleration were deleted. */
  readonly evicted: number;
  /** Nodes outside the zone that were marked or tainted. */
  readonly othersTouched: number;
  /** From the end of the cut until a node is Ready and without our taint, of those that were not. Seconds. */
  readonly recoveryP50Seconds: number;
  readonly recoveryMaxSeconds: number;
}

interface Member {
  readonly name: string;
  readonly isCut: boolean;
  nextBeatAtMs: number;
  taintedAtMs: number | undefined;
  wasMarked: boolean;
  wasTainted: boolean;
  wasEvicted: boolean;
  recoveredAtMs: number | undefined;
}

/** The target of the story: the rules, or the controllers. */
interface Cluster {
  beat(name: string, nowMs: number): void | Promise<void>;
  /** As a machine does after its heartbeats failed for long: a heartbeat and a status post. */
  comeBack(name: string, nowMs: number): void | Promise<void>;
  tick(nowMs: number): void | Promise<void>;
  /** After a tick. */
  look(name: string): Look | Promise<Look>;
}

interface Look {
  readonly ready: boolean;
  readonly tainted: boolean;
}

/** By the rules alone. */
export function cutByRules(options: ZoneCutOptions): Promise<ZoneCutResult> {
  return cutResult(options, ruledCluster(options));
}

/** By the controllers over tables in memory, a pod with the usual tolerations on every node. */
export async function cutByControllers(
  options: ZoneCutOptions,
): Promise<ZoneCutResult & { readonly podsDeleted: number }> {
  const { cluster, podsDeleted } = await controlledCluster(options);
  const result = await cutResult(options, cluster);
  return { ...result, podsDeleted: await podsDeleted() };
}

async function cutResult({ nodes, policy, cutSeconds }: ZoneCutOptions, cluster: Cluster): Promise<ZoneCutResult> {
  const random = seededFraction(SEED);
  const beatMs = policy.beatIntervalSeconds * 1_000;
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const evictAfterMs = policy.podEvictionTimeoutSeconds * 1_000;
  const cutAtMs = START_MS + SETTLED_MS;
  const cutEndMs = cutAtMs + cutSeconds * 1_000;
  const members = Array.from(
    { length: nodes },
    (_, index): Member => ({
      name: nameOf(index),
      isCut: index % CUT_ZONES === 0,
      nextBeatAtMs: START_MS + Math.floor(beatMs * random()),
      taintedAtMs: undefined,
      wasMarked: false,
      wasTainted: false,
      wasEvicted: false,
      recoveredAtMs: undefined,
    }),
  );
  for (let nowMs = START_MS; nowMs <= cutEndMs + RECOVERY_LIMIT_MS; nowMs += periodMs) {
    for (const member of members) {
      for (; member.nextBeatAtMs <= nowMs; member.nextBeatAtMs += beatMs) {
        const atMs = member.nextBeatAtMs;
        if (!member.isCut || atMs < cutAtMs) await cluster.beat(member.name, atMs);
        else if (atMs >= cutEndMs && atMs - beatMs < cutEndMs) await cluster.comeBack(member.name, atMs);
        else if (atMs >= cutEndMs) await cluster.beat(member.name, atMs);
      }
    }
    await cluster.tick(nowMs);
    let touched = 0;
    for (const member of members) {
      const { ready, tainted } = await cluster.look(member.name);
      if (tainted) member.taintedAtMs ??= nowMs;
      if (member.taintedAtMs !== undefined && nowMs - member.taintedAtMs >= evictAfterMs) member.wasEvicted = true;
      if (!tainted) member.taintedAtMs = undefined;
      if (!ready) member.wasMarked = true;
      if (tainted) member.wasTainted = true;
      if (!ready || tainted) touched += 1;
      else if (nowMs >= cutEndMs && (member.wasMarked || member.wasTainted)) member.recoveredAtMs ??= nowMs;
    }
    if (nowMs >= cutEndMs + beatMs && touched === 0) break;
  }
  const cut = members.filter(({ isCut }) => isCut);
  const hit = cut.filter(({ wasMarked, wasTainted }) => wasMarked || wasTainted);
  const recovery = hit.map(({ recoveredAtMs = cutEndMs + RECOVERY_LIMIT_MS }) => (recoveredAtMs - cutEndMs) / 1_000);
  return {
    cutNodes: cut.length,
    marked: cut.filter(({ wasMarked }) => wasMarked).length,
    tainted: cut.filter(({ wasTainted }) => wasTainted).length,
    evicted: cut.filter(({ wasEvicted }) => wasEvicted).length,
    othersTouched: members.filter((member) => !member.isCut && (member.wasMarked || member.wasTainted)).length,
    recoveryP50Seconds: percentile(recovery, 0.5),
    recoveryMaxSeconds: percentile(recovery, 1),
  };
}

const nameOf = (index: number): string => `m-${index}`;
const zoneOf = (index: number): string => `zone-${index % CUT_ZONES}`;

type MutableHealth = { -readonly [Field in keyof NodeHealth]: NodeHealth[Field] };

function ruledCluster({ nodes: count, policy }: ZoneCutOptions): Cluster {
  const nodes = Array.from(
    { length: count },
    (_, index): MutableHealth => ({
      nodeName: nameOf(index),
      uid: `uid-${index}`,
      zone: zoneOf(index),
      ready: 'True',
      excluded: false,
      suspect: false,
      noExecute: { notReady: false, unreachable: false },
      createdAtMs: START_MS - 3_600_000,
      renewedAtMs: START_MS,
      statusAtMs: START_MS,
      podsToMark: false,
    }),
  );
  const byName = new Map(nodes.map((health) => [health.nodeName, health]));
  const zones = new Map<string, ZoneRecord>();
  const queue = new Map<string, QueuedNode>();
  let disruption: DisruptionRecord = NO_DISRUPTION;
  let gate: GateRecord = UNTRIED_GATE;

  const change = (name: string, changed: Partial<MutableHealth>): void => {
    const health = Object.assign(byName.get(name)!, changed);
    health.suspect = isSuspect(health);
  };
  const changeZone = (zone: string, changed: Partial<ZoneRecord>): void => {
    zones.set(zone, { ...zones.get(zone)!, ...changed });
  };

  function apply(decision: MonitorDecision, nowMs: number): void {
    switch (decision.kind) {
      case 'lift':
        change(decision.nodeName, { noExecute: { notReady: false, unreachable: false } });
        return;
      case 'swap':
        change(decision.nodeName, {
          noExecute: { notReady: decision.to === 'notReady', unreachable: decision.to === 'unreachable' },
        });
        return;
      case 'markUnknown':
        change(decision.nodeName, { ready: 'Unknown', markedAtMs: nowMs });
        return;
      case 'enqueue': {
        const { nodeName, uid, zone, addedAtMs } = decision;
        queue.set(nodeName, { nodeName, uid, zone, addedAtMs });
        return;
      }
      case 'dequeue':
        queue.delete(decision.nodeName);
        return;
      case 'createZone': {
        const { zone, state, ratePerSecond } = decision;
        zones.set(zone, { zone, state, limiter: fullLimiter(ratePerSecond) });
        return;
      }
      case 'setZoneState':
        changeZone(decision.zone, { state: decision.to });
        return;
      case 'setZoneRate':
        changeZone(decision.zone, {
          limiter: changeRate(zones.get(decision.zone)!.limiter, decision.toPerSecond, nowMs),
        });
        return;
      case 'dropZone':
        zones.delete(decision.zone);
        return;
      case 'enterTotalDisruption':
      case 'leaveTotalDisruption':
        disruption = applyDisruption(disruption, decision.kind === 'enterTotalDisruption' ? 'enter' : 'leave', nowMs);
        return;
      default:
        return;
    }
  }

  function evict(nowMs: number): void {
    for (const zone of new Set([...queue.values()].map((item) => item.zone))) {
      const { decisions } = decideEvictions(
        {
          items: [...queue.values()].filter((item) => item.zone === zone),
          nodes: byName,
          limiter: zones.get(zone)!.limiter,
        },
        {
          nowMs,
          policy,
          gate: gateVerdictFor(gate, { nowMs, policy }),
          totalDisruption: disruption.total,
          freshSinceMs: Math.max(gate.freshSinceMs, disruption.freshSinceMs),
        },
      );
      for (const decision of decisions) {
        if (decision.kind === 'taint') {
          const limiter = takeToken(zones.get(zone)!.limiter, nowMs);
          if (limiter === undefined) continue;
          changeZone(zone, { limiter });
          change(decision.nodeName, {
            noExecute: { notReady: decision.taint === 'notReady', unreachable: decision.taint === 'unreachable' },
          });
        }
        queue.delete(decision.nodeName);
      }
    }
  }

  return {
    beat: (name, nowMs) => {
      byName.get(name)!.renewedAtMs = nowMs;
    },
    comeBack: (name, nowMs) =>
      change(name, { renewedAtMs: nowMs, statusAtMs: nowMs, ready: 'True', markedAtMs: undefined }),
    tick: (nowMs) => {
      gate = decideGate(gate, { nowMs, policy, probes: [{ sentAtMs: nowMs, accepted: true }] });
      const world = { nodes, zones: [...zones.values()], queue: [...queue.values()], disruption, gate };
      for (const decision of decideMonitor(world, { nowMs, policy }).decisions) apply(decision, nowMs);
      evict(nowMs);
    },
    look: (name) => {
      const { ready, noExecute } = byName.get(name)!;
      return { ready: ready === 'True', tainted: noExecute.notReady || noExecute.unreachable };
    },
  };
}

async function controlledCluster({
  nodes,
  policy,
}: ZoneCutOptions): Promise<{ cluster: Cluster; podsDeleted: () => Promise<number> }> {
  const fleet = controlledFleet({ policy, probe: { beat: async () => ({ kind: 'accepted' }) } });
  const podOf = (name: string): string => `pod-${name}`;
  fleet.at(0);
  for (let index = 0; index < nodes; index += 1) {
    await fleet.register(nameOf(index), { zone: zoneOf(index) });
    await fleet.post(nameOf(index));
    await fleet.addPod(podOf(nameOf(index)), nameOf(index));
  }
  await fleet.streams();
  const at = (nowMs: number): void => fleet.at((nowMs - START_MS) / 1_000);
  return {
    cluster: {
      async beat(name, nowMs) {
        at(nowMs);
        await fleet.beat(name);
      },
      async comeBack(name, nowMs) {
        at(nowMs);
        await fleet.beat(name);
        await fleet.post(name);
      },
      async tick(nowMs) {
        at(nowMs);
        await fleet.streams();
        await fleet.tick();
      },
      async look(name) {
        const health = (await fleet.health(name))!;
        return { ready: health.ready === 'True', tainted: health.noExecute.notReady || health.noExecute.unreachable };
      },
    },
    async podsDeleted() {
      let count = 0;
      for (let index = 0; index < nodes; index += 1) {
        const pod = await fleet.pod(podOf(nameOf(index)));
        if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) count += 1;
      }
      return count;
    },
  };
}
