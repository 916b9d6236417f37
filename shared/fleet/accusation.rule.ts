/**
 * Whether the grace period of a silent machine is shortened, because others of its site report that it is silent there
 * too (docs/decisions/0063). Pure.
 *
 * A witness is another machine of the zone that reports it. A report counts while all of this holds:
 *   - It was received within the last 30 s.
 *   - It began after the last sign of life of the accused. Otherwise the accused has answered it with a heartbeat.
 *   - Its reporter sends heartbeats itself: the last one is at most its interval and one period old.
 * The accusation counts when two witnesses agree, and one of them is a hub. It counts from the time of the second one.
 *
 * Nothing is shortened in a zone if more than a third of its machines were reported within the last 30 s. Reports that
 * were withdrawn, and those of machines that send heartbeats, count for this. The fault is then likely in the network.
 * Machines that return one after the other from such a fault are not accused while the count falls. Nor is it while a
 * heartbeat or a tick of our own has failed since the last sign of life of the accused: its next one may have failed
 * with it.
 *
 * All times are receipt times of ours. A witness that lies can shorten the wait for a machine that is silent, and
 * prevent that it is shortened.
 */
import { defined } from '../defined.ts';
import { isSilencePlanned, lastSpokeAtMs, type NodeHealth } from './nodes/health.ts';
import { policyOf } from './nodes/node-profile.ts';
import type { Policy } from './policy.ts';
import { REPORT_VALID_MS, type SilenceReport, type WitnessRole } from './silent-machines.ts';

/** If a larger share of a zone is accused, the network of the site is at fault. */
const ACCUSED_SHARE_MAX = 1 / 3;
/** Witnesses in the record of a decision that does not rest on them. */
const RECORDED_WITNESSES_MAX = 8;

/** One machine's report of another one. */
export interface Witness {
  readonly nodeName: string;
  readonly role: WitnessRole;
  /** Since when it has reported the accused. Epoch milliseconds. */
  readonly sinceMs: number;
  /** When its report was last received. Epoch milliseconds. */
  readonly receivedAtMs: number;
  /** Its own last heartbeat; absent: none. Epoch milliseconds. */
  readonly renewedAtMs?: number;
  /** Its own heartbeat interval. */
  readonly intervalSeconds: number;
}

/** All that is known about one accused machine. */
export interface Testimony {
  readonly witnesses: readonly Witness[];
  /** Machines of its zone, and how many of them were reported. */
  readonly machines: number;
  readonly accused: number;
  /** Until when our own way of heartbeats was not proven (gate.ts); absent: it was. Epoch milliseconds. */
  readonly pathFailedAtMs?: number;
}

export type AccusationVerdict =
  | { readonly kind: 'counts'; readonly sinceMs: number; readonly by: readonly [hub: Witness, other: Witness] }
  /** Fewer than two witnesses agree, or no hub does. */
  | { readonly kind: 'tooFewWitnesses' }
  /** The network of the site is likely at fault. */
  | { readonly kind: 'tooManyAccused' }
  /** Our own way of heartbeats is likely at fault. */
  | { readonly kind: 'pathFailed' };

export type AccusationPolicy = Pick<Policy, 'nodeMonitorPeriodSeconds'>;

export function accusationVerdict(
  { witnesses, machines, accused, pathFailedAtMs = -Infinity }: Testimony,
  { spokeAtMs }: { readonly spokeAtMs: number },
  { nowMs, policy }: { readonly nowMs: number; readonly policy: AccusationPolicy },
): AccusationVerdict {
  const valid = witnesses
    .filter((witness) => isValid(witness, spokeAtMs, { nowMs, policy }))
    .sort((one, other) => one.sinceMs - other.sinceMs || (one.nodeName < other.nodeName ? -1 : 1));
  const hub = valid.find(({ role }) => role === 'hub');
  const other = valid.find((witness) => witness !== hub);
  if (hub === undefined || other === undefined) return { kind: 'tooFewWitnesses' };
  if (accused > machines * ACCUSED_SHARE_MAX) return { kind: 'tooManyAccused' };
  if (pathFailedAtMs >= spokeAtMs) return { kind: 'pathFailed' };
  return { kind: 'counts', sinceMs: Math.max(hub.sinceMs, other.sinceMs), by: [hub, other] };
}

function isValid(
  { sinceMs, receivedAtMs, renewedAtMs, intervalSeconds }: Witness,
  spokeAtMs: number,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: AccusationPolicy },
): boolean {
  const aliveMs = (intervalSeconds + policy.nodeMonitorPeriodSeconds) * 1_000;
  return (
    nowMs - receivedAtMs <= REPORT_VALID_MS &&
    sinceMs > spokeAtMs &&
    renewedAtMs !== undefined &&
    nowMs - renewedAtMs <= aliveMs
  );
}

/** As a decision records it: the witnesses that decided, or some of those that did not suffice. */
export const recordedTestimony = (testimony: Testimony, verdict: AccusationVerdict): Testimony => ({
  ...testimony,
  witnesses: verdict.kind === 'counts' ? verdict.by : testimony.witnesses.slice(0, RECORDED_WITNESSES_MAX),
});

export type Testimonies = ReadonlyMap<string, Testimony>;
export const NO_TESTIMONIES: Testimonies = new Map();

/** The testimony about each accused machine, by its name. A report of a machine in another zone is none. */
export function testimoniesOf(
  nodes: readonly NodeHealth[],
  reports: readonly SilenceReport[],
  at: { readonly nowMs: number; readonly policy: Policy; readonly pathFailedAtMs: number | undefined },
): Testimonies {
  const { nowMs, policy, pathFailedAtMs } = at;
  const recent = reports.filter(({ receivedAtMs }) => nowMs - receivedAtMs <= REPORT_VALID_MS);
  if (recent.length === 0) return NO_TESTIMONIES;
  const known = new Map(nodes.map((health) => [health.nodeName, health]));
  const zones = new Map<string, { machines: number; readonly accused: Set<string> }>();
  for (const health of nodes) {
    const zone = zones.get(health.zone) ?? { machines: 0, accused: new Set() };
    zones.set(health.zone, zone);
    if (!isSilencePlanned(health, nowMs)) zone.machines += 1;
  }
  const witnesses = new Map<string, Witness[]>();
  for (const { reporter, role, receivedAtMs, sinceMs, withdrawnAtMs } of recent) {
    const { zone, profile, renewedAtMs } = known.get(reporter) ?? {};
    if (zone === undefined) continue;
    const isOther = (name: string): boolean => {
      const health = known.get(name);
      return name !== reporter && health?.zone === zone && !isSilencePlanned(health, nowMs);
    };
    const { accused } = zones.get(zone)!;
    for (const [name, atMs] of withdrawnAtMs) if (nowMs - atMs <= REPORT_VALID_MS && isOther(name)) accused.add(name);
    const intervalSeconds = policyOf(policy, profile).beatIntervalSeconds;
    for (const [name, sinceOfOneMs] of sinceMs) {
      if (!isOther(name)) continue;
      accused.add(name);
      const about = witnesses.get(name) ?? [];
      witnesses.set(name, about);
      about.push({
        nodeName: reporter,
        role,
        sinceMs: sinceOfOneMs,
        receivedAtMs,
        ...(renewedAtMs === undefined ? {} : { renewedAtMs }),
        intervalSeconds,
      });
    }
  }
  return new Map(
    [...witnesses].map(([name, about]) => {
      const { machines, accused } = zones.get(known.get(name)!.zone)!;
      return [name, { witnesses: about, machines, accused: accused.size, ...defined({ pathFailedAtMs }) }];
    }),
  );
}

/** The verdict on one node; undefined: no machine reports it. */
export const verdictOn = (
  health: NodeHealth,
  testimony: Testimony | undefined,
  at: { readonly nowMs: number; readonly policy: AccusationPolicy },
): AccusationVerdict | undefined =>
  testimony === undefined ? undefined : accusationVerdict(testimony, { spokeAtMs: lastSpokeAtMs(health) }, at);
