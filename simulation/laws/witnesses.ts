/**
 * Marks that witnesses caused. A machine with heartbeats is never marked for a report, whoever lies. A mark before the
 * end of the grace period needs two valid witnesses, one of them a relay. At most a third of the zone may be reported.
 *
 * A mark compares two clocks of ours: that of the receipt and that of the tick. So the shortest silence before a mark
 * is shorter by their skew. A machine that sends heartbeats directly is silent for less in any case. With a relay that
 * holds them back it is not: such a machine is only safe while the skew is below a second (docs/decisions/0063).
 *
 * Since when a machine is reported is computed here from the names in the stored rows alone.
 */
import { policyOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { ItemKey } from '../../shared/store/item-store.ts';
import { effectMs, type Law, type LawContext, seconds } from './law.ts';
import { marksNodes, type TrueNode } from './truth.ts';

/** Of a report. Milliseconds. */
const VALID_MS = 30_000;
/** A machine that sends heartbeats is silent for less: an interval with jitter, a relay's delay, a direct heartbeat. */
const steadyMs = (intervalMs: number): number => 1.04 * intervalMs + 3_600;
/** If a larger share of a zone is reported, its network is at fault. */
const DOUBT_SHARE = 1 / 3;

interface StoredReport {
  readonly role: unknown;
  readonly receivedAtMs: number;
  readonly sinceMs: ReadonlyMap<string, number>;
}

export interface WitnessesLaw extends Law {
  /** Whether the last mark of the node was before the end of its grace period, with valid witnesses. */
  isWitnessed(name: string): boolean;
}

/** `onMarked` receives each mark of a Ready node, and whether it came before the end of its grace period. */
export function marksHaveWitnesses(
  context: LawContext,
  onMarked: (name: string, isWitnessed: boolean) => void,
): WitnessesLaw {
  const { truth, plan, nowMs, least, most, clockSlackMs, calmSinceMs, machine, fail } = context;
  const reports = new Map<string, StoredReport>();
  /** When each machine was last reported, by anybody of its zone. */
  const reportedAtMs = new Map<string, number>();
  const witnessed = new Set<string>();

  function learn(key: ItemKey, image: Readonly<Record<string, unknown>> | undefined, atMs: number): void {
    const before = reports.get(key.sk);
    for (const name of before?.sinceMs.keys() ?? []) reportedAtMs.set(name, atMs);
    if (image === undefined) return void reports.delete(key.sk);
    const names = String(image['names'])
      .split(',')
      .filter((name) => name !== '');
    const isAfterPause = before === undefined || atMs - before.receivedAtMs > VALID_MS;
    const sinceMs = new Map(names.map((name) => [name, (isAfterPause ? undefined : before.sinceMs.get(name)) ?? atMs]));
    for (const name of names) reportedAtMs.set(name, atMs);
    reports.set(key.sk, { role: image['role'], receivedAtMs: atMs, sinceMs });
  }

  function judge(node: TrueNode): string | undefined {
    const slackMs = clockSlackMs(node.lastHeartbeatAtMs) + effectMs(context, node.lastHeartbeatAtMs);
    const silentMs = nowMs() - node.lastHeartbeatAtMs;
    const intervalMs = 1_000 * least((policy) => policyOf(policy, node.profile).beatIntervalSeconds);
    if (silentMs + clockSlackMs(node.lastHeartbeatAtMs) < steadyMs(intervalMs)) {
      return `${node.name} was marked ${seconds(silentMs)} after its last heartbeat`;
    }
    if (isReached(node)) return `${node.name} was marked early, although it is on and its heartbeats can arrive`;
    const zone = [...truth.nodes.values()].filter((each) => each.zone === node.zone);
    // Machines that promised to be silent are not counted. A promise that ended just now may stand for a tick.
    const isPromised = ({ plannedUntilMs, promiseEndedAtMs }: TrueNode): boolean =>
      plannedUntilMs !== undefined || nowMs() - promiseEndedAtMs <= slackMs;
    const accused = zone.filter(
      (each) =>
        !isPromised(each) && nowMs() - (reportedAtMs.get(each.name) ?? Number.NEGATIVE_INFINITY) <= VALID_MS - slackMs,
    );
    if (accused.length > zone.length * DOUBT_SHARE) {
      return `${node.name} was marked early, although ${accused.length} of ${zone.length} machines were reported`;
    }
    const aliveMs = most((policy) => 1_000 * (policy.beatIntervalSeconds + policy.nodeMonitorPeriodSeconds));
    const valid = zone.flatMap(({ name, lastHeartbeatAtMs }) => {
      const report = reports.get(name);
      const sinceMs = report?.sinceMs.get(node.name);
      const isValid =
        name !== node.name &&
        sinceMs !== undefined &&
        sinceMs >= node.lastHeartbeatAtMs - slackMs &&
        nowMs() - report!.receivedAtMs <= VALID_MS + slackMs &&
        nowMs() - lastHeartbeatAtMs <= aliveMs + slackMs;
      return isValid ? [{ role: report!.role, sinceMs }] : [];
    });
    if (valid.length < 2 || !valid.some(({ role }) => role === 'hub')) {
      return `${node.name} was marked ${seconds(silentMs)} after its last heartbeat, with ${valid.length} valid witnesses`;
    }
    return undefined;
  }

  /** Whether nothing keeps its heartbeats from us. */
  function isReached({ name, lastHeartbeatAtMs }: TrueNode): boolean {
    const real = machine(name);
    if (real === undefined || !real.isOn || calmSinceMs() === undefined) return false;
    const isSince = real.sinceMs <= lastHeartbeatAtMs && real.lastCutMs < lastHeartbeatAtMs;
    return isSince && !(real.isRelayed && plan.has('skew'));
  }

  return {
    name: 'witnesses',
    isWitnessed: (name) => witnessed.has(name),
    onHappened(happened, by) {
      if (happened.kind === 'control' && happened.change.key.pk === 'witnesses') {
        learn(happened.change.key, happened.change.newImage, happened.change.atMs);
      }
      if (happened.kind !== 'ready') return;
      const { node, from, to } = happened;
      witnessed.delete(node.name);
      if (to !== 'Unknown' || from === undefined || !marksNodes(by.name)) return;
      const graceMs = 1_000 * least((policy) => policyOf(policy, node.profile).nodeMonitorGracePeriodSeconds);
      // By a clock of ours that is wrong, a whole grace period seems shorter.
      const slackMs = clockSlackMs(node.lastHeartbeatAtMs) + clockSlackMs(node.lastHeartbeatAtMs, 'steps');
      const isWitnessed = nowMs() - node.lastHeartbeatAtMs + slackMs < graceMs;
      if (from === 'True') onMarked(node.name, isWitnessed);
      if (!isWitnessed) return;
      witnessed.add(node.name);
      const message = judge(node);
      if (message !== undefined) fail({ law: 'witnesses', subjects: [node.name], message });
    },
  };
}
